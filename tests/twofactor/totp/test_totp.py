"""TOTP against an independent implementation, with the clock's edges (RFC 6238)."""

import base64
import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyotp
import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from accounts.tokens import development
from environments.models import Organization
from tests.cast import Caller, member, organization, signed_in
from tests.twofactor.holder import Holder, as_typed, ask, reply, set_up, with_totp
from twofactor.models import Enrolment, Factor
from twofactor.totp.enrolment import otpauth_uri
from twofactor.totp.proof import matching_step

pytestmark = pytest.mark.django_db
# RFC 6238, appendix B, SHA-1, the last six of its eight digits.
RFC_SEED = base64.b32encode(b"12345678901234567890").decode()
RFC_VECTORS = [
    (59, "287082"),
    (1111111109, "081804"),
    (1111111111, "050471"),
    (1234567890, "005924"),
    (2000000000, "279037"),
    (20000000000, "353130"),
]


@pytest.mark.parametrize(("at", "code"), RFC_VECTORS)
def test_the_vectors_of_the_rfc_hold(at: int, code: str) -> None:
    now = datetime.fromtimestamp(at, tz=UTC)
    assert matching_step(RFC_SEED, code, now=now) == at // 30


def test_a_code_is_read_as_authenticators_show_it(alice: User) -> None:
    caller = signed_in(alice)
    begun = set_up(caller).body
    app = pyotp.TOTP(begun["secret"])
    code = app.now()
    body = {"secret_id": begun["secret_id"], "code": f"{code[:3]} {code[3:]}"}
    assert caller.post("/v1/auth/2fa/totp/verify", body).status == 200
    later = app.at(datetime.now(tz=UTC), counter_offset=1)
    assert reply(ask(caller), as_typed(later)).status == 200


@pytest.mark.parametrize("second", [0, 1, 29])
@pytest.mark.parametrize(
    ("steps", "is_accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)]
)
def test_codes_of_one_step_before_and_after_are_accepted(
    second: int, steps: int, is_accepted: bool
) -> None:
    now = datetime.fromtimestamp(1_700_000_010 + second, tz=UTC)
    code = pyotp.TOTP(RFC_SEED).at(now, counter_offset=steps)
    assert (matching_step(RFC_SEED, code, now=now) is not None) is is_accepted


def test_setup_gives_a_seed_and_its_qr_code_once(alice: User) -> None:
    answer = set_up(signed_in(alice))
    assert answer.status == 200
    assert set(answer.body) == {"secret_id", "secret", "qr_code_png"}
    assert len(base64.b32decode(answer.body["secret"])) == 20
    png = base64.b64decode(answer.body["qr_code_png"])
    assert io.BytesIO(png).read(8) == b"\x89PNG\r\n\x1a\n"
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_uri_inside_the_qr_code_is_what_apps_read() -> None:
    uri = otpauth_uri(RFC_SEED, issuer="A:B & Co", account_name="alice@example.com")
    parsed = pyotp.parse_uri(uri)
    assert isinstance(parsed, pyotp.TOTP)
    assert (parsed.issuer, parsed.name, parsed.secret) == (
        "A B & Co",
        "alice@example.com",
        RFC_SEED,
    )


@pytest.mark.parametrize(
    "body",
    [{}, {"issuer": "é" * 100, "account_name": "😀" * 254}],
    ids=["names of the account", "names in the body"],
)
def test_names_too_long_for_a_qr_code_are_shortened_in_it(db: None, body: dict[str, str]) -> None:
    user = member(organization("株" * 200), "alice@example.com")
    answer = signed_in(user).post("/v1/auth/2fa/totp/setup", body)
    assert answer.status == 200
    assert base64.b64decode(answer.body["qr_code_png"]).startswith(b"\x89PNG")


def test_long_names_keep_their_beginning() -> None:
    parsed = pyotp.parse_uri(otpauth_uri(RFC_SEED, issuer="株" * 200, account_name="a" * 254))
    assert isinstance(parsed, pyotp.TOTP)
    assert (parsed.issuer, parsed.name) == ("株" * 28, "a" * 254)


def test_set_ups_are_limited_per_user(alice: User, bob: User) -> None:
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    with time_machine.travel(now, tick=False) as clock:
        caller = signed_in(alice)
        answers = [set_up(caller) for _ in range(31)]
        assert [answer.status for answer in answers] == [200] * 30 + [429]
        assert (answers[-1].code, answers[-1].headers["Retry-After"]) == (
            "enrolment_too_often",
            "3600",
        )
        assert set_up(signed_in(bob)).status == 200
        clock.move_to(now + timedelta(hours=1))
        assert set_up(signed_in(alice)).status == 200


def test_nothing_is_active_before_a_code_was_verified(alice: User) -> None:
    caller = signed_in(alice)
    set_up(caller)
    assert caller.get("/v1/auth/2fa/status").body["enabled"] is False


def test_verify_activates_and_gives_ten_backup_codes_once(alice: User) -> None:
    holder = with_totp(alice)
    assert len(set(holder.backup_codes)) == 10
    status = holder.caller.get("/v1/auth/2fa/status").body
    assert status == {
        "enabled": True,
        "required": False,
        "enabled_methods": ["totp", "backup_codes"],
        "default_method": "totp",
        "phone_verified": False,
        "backup_codes_remaining": 10,
    }


def test_verifying_raises_the_session(holder: Holder) -> None:
    who = holder.caller.get("/v1/whoami").body
    assert (who["aal"], who["amr"]) == (2, ["mfa", "otp", "pwd"])


def test_a_wrong_code_is_counted_and_five_end_the_set_up(alice: User) -> None:
    caller = signed_in(alice)
    begun = set_up(caller).body
    holder = Holder(alice, caller, begun["secret"])
    body = {"secret_id": begun["secret_id"], "code": holder.wrong_code()}
    for _ in range(5):
        answer = caller.post("/v1/auth/2fa/totp/verify", body)
        assert (answer.status, answer.code) == (401, "invalid_code")
    body["code"] = holder.code()
    answer = caller.post("/v1/auth/2fa/totp/verify", body)
    assert (answer.status, answer.code) == (410, "enrolment_gone")


@pytest.mark.parametrize(
    "code",
    [
        "12345",
        "1234567",
        "",
        "١٢٣٤٥٦",
        "+12345",
        "-12345",
        "12 345",
        "1_2345",
        "0x1234",
        "\uff11\uff12\uff13\uff14\uff15\uff16",
    ],
)
def test_what_cannot_be_a_code_is_400_and_not_counted(alice: User, code: str) -> None:
    caller = signed_in(alice)
    begun = set_up(caller).body
    body = {"secret_id": begun["secret_id"], "code": code}
    answer = caller.post("/v1/auth/2fa/totp/verify", body)
    assert answer.status == 400
    assert Enrolment.objects.get().attempts_left == 5


def test_blanks_around_a_code_are_ignored(alice: User) -> None:
    caller = signed_in(alice)
    begun = set_up(caller).body
    code = Holder(alice, caller, begun["secret"]).code()
    body = {"secret_id": begun["secret_id"], "code": f" {code}\n"}
    assert caller.post("/v1/auth/2fa/totp/verify", body).status == 200


def test_a_code_is_refused_twice(holder: Holder) -> None:
    code = holder.code()
    assert reply(ask(holder.caller), code).status == 200
    with time_machine.travel(timezone.now() + timedelta(seconds=1), tick=False):
        answer = reply(ask(signed_in(holder.user)), code)
    assert (answer.status, answer.code) == (401, "invalid_code")


def test_the_code_that_activated_is_used_up(alice: User) -> None:
    caller = signed_in(alice)
    begun = set_up(caller).body
    holder = Holder(alice, caller, begun["secret"])
    code = holder.code()
    caller.post("/v1/auth/2fa/totp/verify", {"secret_id": begun["secret_id"], "code": code})
    assert reply(ask(caller), code).code == "invalid_code"


def test_an_earlier_step_is_refused_after_a_later_one(holder: Holder) -> None:
    assert reply(ask(holder.caller), holder.code(steps=1)).status == 200
    assert reply(ask(signed_in(holder.user)), holder.code()).code == "invalid_code"


@pytest.mark.django_db(transaction=True)
def test_one_step_twice_in_parallel_gives_one_success(alice: User) -> None:
    holder = with_totp(alice)
    code = holder.code()
    challenges = [ask(signed_in(alice)) for _ in range(8)]

    def once(index: int) -> int:
        try:
            return reply(challenges[index], code).status
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(once, range(8)))
    assert statuses == [200, 401, 401, 401, 401, 401, 401, 401]


def test_setting_up_again_replaces_only_after_verification(holder: Holder) -> None:
    second = set_up(holder.caller).body
    assert reply(ask(holder.caller), holder.code()).status == 200
    new = Holder(holder.user, holder.caller, second["secret"])
    body = {"secret_id": second["secret_id"], "code": new.code()}
    answer = holder.caller.post("/v1/auth/2fa/totp/verify", body)
    # Merely replaced: the backup codes stay, and none is shown again.
    assert answer.body["backup_codes"] == []
    with time_machine.travel(timezone.now() + timedelta(minutes=2)):
        session = signed_in(holder.user)
        assert reply(ask(session), holder.code()).status == 401
        assert reply(ask(session), new.code()).status == 200


def test_the_seed_is_encrypted_and_never_shown_again(holder: Holder) -> None:
    factor = Factor.objects.get(method="totp")
    assert holder.seed not in factor.secret
    for path in ["/v1/auth/2fa/status", "/v1/whoami", "/v1/auth/2fa/challenge"]:
        assert holder.seed not in holder.caller.get(path).raw.content.decode()


def test_anothers_secret_id_is_gone(alice: User, charlie: User) -> None:
    begun = set_up(signed_in(alice)).body
    code = Holder(alice, Caller(), begun["secret"]).code()
    body = {"secret_id": begun["secret_id"], "code": code}
    answer = signed_in(charlie).post("/v1/auth/2fa/totp/verify", body)
    assert (answer.status, answer.code) == (410, "enrolment_gone")
    assert signed_in(charlie).get("/v1/auth/2fa/status").body["enabled"] is False


def test_a_development_token_has_no_factors(home: Organization, settings: Settings) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, dev_org_id=home.pk, dev_secret="d" * 48)
    caller = Caller(development.token_for(home.pk))
    assert set_up(caller).code == "permission_denied"
    assert caller.get("/v1/auth/2fa/status").status == 403
