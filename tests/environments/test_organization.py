"""The organization itself: its name."""

import pytest

from accounts.models import User
from audit.models import AuditEvent
from tests.cast import signed_in

pytestmark = pytest.mark.django_db
PATH = "/v1/organization"


def test_an_admin_renames_the_organization_and_every_member_sees_it(alice: User, bob: User) -> None:
    before = signed_in(bob).get(PATH).body
    answer = signed_in(alice).call("PATCH", PATH, {"name": " Lakes & Sons "})
    assert (answer.status, answer.body["name"]) == (200, "Lakes & Sons")
    assert signed_in(bob).get(PATH).body == before | {"name": "Lakes & Sons"}
    assert signed_in(bob).get("/v1/whoami").body["organization"] == "Lakes & Sons"
    event = AuditEvent.objects.get(tag="api:organization:update")
    assert event.data == {"from": before["name"], "to": "Lakes & Sons"}


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, None])
def test_a_name_that_is_none_is_refused_at_its_field(alice: User, name: str | None) -> None:
    answer = signed_in(alice).call("PATCH", PATH, {"name": name})
    assert answer.status == 400
    assert [wrong["field"] for wrong in answer.body["errors"]] == ["name"]


def test_others_cannot_rename_it(bob: User, charlie: User) -> None:
    assert signed_in(bob).call("PATCH", PATH, {"name": "Bobs"}).code == "permission_denied"
    assert signed_in(charlie).call("PATCH", PATH, {"name": "Charlies"}).status == 200
    assert signed_in(bob).get(PATH).body["name"] != "Charlies"
