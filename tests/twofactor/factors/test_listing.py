"""The list of the kinds of second factors."""

from tests.cast import Caller
from twofactor import registry


def test_anyone_reads_the_factors_with_their_labels_in_order(anyone: Caller) -> None:
    listed = anyone.get("/v1/auth/2fa/factors").body["factors"]

    assert [row["name"] for row in listed] == [each.type.name for each in registry.FACTORS]
    assert listed[0] == {
        "name": "totp",
        "challenge_name": "totp",
        "label": "Authenticator app",
        "is_second_factor": True,
    }
    assert [row["name"] for row in listed if not row["is_second_factor"]] == ["backup_codes"]
