"""Tokens of the console are in cookies only: never in a body, never readable by a script."""

import json
import time

import pytest
from django.http import JsonResponse
from django.test import RequestFactory

from accounts.models import Session, User
from console.middleware import ConsoleMiddleware
from environments.models import Organization
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller, member
from tests.console.support import TOKENS, Jar, cookie, set_by, signed_up
from tests.recovery.support import NEW_PASSWORD, PREFIX, initiate, log_in, mailed_token
from tests.twofactor.holder import Holder, with_totp

pytestmark = pytest.mark.django_db

LOGIN = {"email": "alice@example.com", "password": PASSWORD}
JWT_START = "eyJ"


@pytest.fixture
def holder(home: Organization) -> Holder:
    return with_totp(member(home, "alice@example.com", password=PASSWORD))


def assert_no_token(answer: Answer) -> None:
    text = answer.raw.content.decode()
    assert JWT_START not in text
    assert not any(f'"{name}"' in text for name in TOKENS)


def proven(jar: Jar, holder: Holder, **more: object) -> Answer:
    """Pass the second factor on the page."""
    challenge = jar.page("GET", "/v1/auth/2fa/challenge").body["challenge_id"]
    path = f"/v1/auth/2fa/challenge/{challenge}/verify"
    return jar.page("POST", path, {"code": holder.code(), **more})


def test_signing_up_sets_cookies_and_shows_no_token() -> None:
    jar = Jar()
    answer = jar.page(
        "POST", "/v1/auth/signup", {"email": "dora@example.com", "password": "correct horse bat"}
    )
    assert answer.status == 201
    assert_no_token(answer)
    assert answer.body["environment"] == {"id": "live", "name": "live"}
    assert set(jar.cookies) == {cookie("access"), cookie("refresh")}
    assert jar.page("GET", "/v1/whoami").body["email"] == "dora@example.com"


def test_a_mailed_sign_up_link_sets_cookies_and_shows_no_token() -> None:
    jar = signed_up()
    assert jar.page("POST", "/v1/auth/signup/link", {"email": "new@example.com"}).status == 202
    token = inbox.secret_of(inbox.messages("mail", "signup_link")[-1])
    body = {"token": token, "password": NEW_PASSWORD}
    answer = jar.page("POST", "/v1/auth/signup/complete", body)
    assert answer.status == 201
    assert_no_token(answer)
    assert set(jar.cookies) == {cookie("access"), cookie("refresh")}
    assert jar.page("GET", "/v1/whoami").body["email"] == "new@example.com"


def test_every_cookie_is_hidden_from_scripts(holder: Holder) -> None:
    jar = Jar()
    seen = set_by(jar.page("POST", "/v1/auth/login", LOGIN))
    seen |= set_by(proven(jar, holder, trust_device=True))
    kept = {name: morsel for name, morsel in seen.items() if morsel.value}
    assert set(kept) == {cookie("access"), cookie("refresh"), cookie("device")}
    for name, morsel in seen.items():
        assert name.startswith("__Host-")
        assert morsel["secure"] is True
        assert morsel["httponly"] is True
        assert morsel["samesite"] == "Strict"
        assert morsel["path"] == "/"
        assert morsel["domain"] == ""


def test_cookies_live_as_long_as_their_tokens(holder: Holder) -> None:
    jar = Jar()
    first = jar.page("POST", "/v1/auth/login", LOGIN)
    mfa = set_by(first)[cookie("mfa")]
    assert abs(mfa["max-age"] - (first.body["mfa_expires_at"] - time.time())) < 5
    second = proven(jar, holder, trust_device=True)
    for kind in ("access", "refresh"):
        lives_s = set_by(second)[cookie(kind)]["max-age"]
        assert abs(lives_s - (second.body["refresh_expires_at"] - time.time())) < 5
    assert set_by(second)[cookie("device")]["max-age"] == 30 * 86400


def test_a_pending_sign_in_replaces_the_session_and_a_session_the_pending_one(
    holder: Holder,
) -> None:
    jar = signed_up()
    answer = jar.page("POST", "/v1/auth/login", LOGIN)
    assert_no_token(answer)
    assert answer.body["status"] == "mfa_required"
    assert set(jar.cookies) == {cookie("mfa")}
    assert jar.page("GET", "/v1/whoami").code == "token_invalid"
    answer = proven(jar, holder)
    assert answer.status == 200
    assert_no_token(answer)
    assert set(jar.cookies) == {cookie("access"), cookie("refresh")}
    assert jar.page("GET", "/v1/whoami").body["aal"] == 2


def test_a_trusted_device_skips_the_second_factor_and_its_token_is_rotated(
    holder: Holder,
) -> None:
    jar = Jar()
    jar.page("POST", "/v1/auth/login", LOGIN)
    proven(jar, holder, trust_device=True, device_name="Laptop")
    jar.page("POST", "/v1/auth/logout", {})
    assert set(jar.cookies) == {cookie("device")}
    before = jar.cookies[cookie("device")]
    answer = jar.page("POST", "/v1/auth/login", LOGIN)
    assert answer.body["status"] == "authenticated"
    assert_no_token(answer)
    assert jar.cookies[cookie("device")] != before


def test_the_device_token_is_sent_to_the_login_only(holder: Holder) -> None:
    """Its token is a credential that no other path needs."""
    jar = Jar()
    jar.page("POST", "/v1/auth/login", LOGIN)
    proven(jar, holder, trust_device=True)
    answer = jar.page("GET", "/v1/whoami")
    assert "HTTP_X_DEVICE_TOKEN" not in vars(answer.raw)["wsgi_request"].META


def test_a_refresh_reads_the_cookie_and_sets_new_ones() -> None:
    jar = signed_up()
    before = dict(jar.cookies)
    answer = jar.page("POST", "/v1/auth/refresh", {})
    assert answer.status == 200
    assert_no_token(answer)
    assert set(answer.body) == {"access_expires_at", "refresh_expires_at"}
    assert jar.cookies[cookie("refresh")] != before[cookie("refresh")]
    assert jar.page("GET", "/v1/whoami").status == 200


def test_a_refused_refresh_deletes_the_cookies() -> None:
    jar = signed_up()
    Session.objects.all().delete()
    assert jar.page("POST", "/v1/auth/refresh", {}).status == 401
    assert jar.cookies == {}


def test_a_switch_reads_the_cookie_and_keeps_the_other_fields() -> None:
    jar = signed_up()
    answer = jar.page("POST", "/v1/auth/switch", {"environment": "sandbox"})
    assert answer.status == 200
    assert_no_token(answer)
    assert jar.page("GET", "/v1/whoami").body["environment"]["id"] == "sandbox"


def test_a_refresh_that_another_tabs_switch_has_overtaken_keeps_the_new_cookies() -> None:
    jar = signed_up()
    before = Jar(dict(jar.cookies))
    assert jar.page("POST", "/v1/auth/switch", {"environment": "sandbox"}).status == 200
    late = before.page("POST", "/v1/auth/refresh", {})
    assert (late.status, late.code) == (401, "token_superseded")
    assert set_by(late) == {}
    assert jar.page("GET", "/v1/whoami").status == 200


def test_signing_out_ends_the_session_and_clears_the_cookies() -> None:
    jar = signed_up()
    kept = dict(jar.cookies)
    answer = jar.page("POST", "/v1/auth/logout", {})
    assert answer.status == 204
    assert jar.cookies == {}
    for name, morsel in set_by(answer).items():
        assert (morsel.value, morsel["max-age"]) == ("", 0), name
    assert Jar(kept).page("GET", "/v1/whoami").code == "session_revoked"


def test_signing_out_clears_invalid_cookies() -> None:
    jar = Jar({cookie("access"): "x", cookie("refresh"): "nonsense"})
    assert jar.page("POST", "/v1/auth/logout", {}).status == 401
    assert jar.cookies == {}


def test_a_recovery_keeps_its_token_in_a_cookie(home: Organization) -> None:
    user = member(home, "alice@example.com", password=PASSWORD)
    started = initiate(user)
    body = {"recovery_id": started.body["recovery_id"], "token": mailed_token()}
    jar = Jar()
    verified = jar.page("POST", f"{PREFIX}/verify", body)
    assert verified.status == 200
    assert_no_token(verified)
    assert set(jar.cookies) == {cookie("reset")}
    assert jar.page("POST", f"{PREFIX}/complete", {"password": NEW_PASSWORD}).status == 204
    assert jar.cookies == {}
    assert log_in(user, NEW_PASSWORD).body["status"] == "authenticated"


def test_the_reset_cookie_gives_no_session_and_is_deleted_after_use() -> None:
    jar = Jar({cookie("reset"): "nonsense"})
    assert jar.page("GET", "/v1/whoami").code == "not_authenticated"
    assert jar.page("POST", f"{PREFIX}/complete", {"password": NEW_PASSWORD}).status == 410
    assert jar.cookies == {}


def test_a_field_in_the_body_takes_precedence_over_the_cookie() -> None:
    jar, other = signed_up(), signed_up("other@example.com")
    sent = {"refresh_token": other.cookies[cookie("refresh")]}
    assert jar.page("POST", "/v1/auth/logout", sent).status == 204
    assert other.page("GET", "/v1/whoami").code == "session_revoked"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b"null",
        b'"text"',
        b"\xff",
        b"{" + b" " * 70000,
        b"[" * 60000,
        b'{"a":' * 9000 + b"1" + b"}" * 9000,
    ],
    ids=["list", "cut", "null", "text", "bytes", "long", "deep list", "deep object"],
)
def test_a_body_that_is_not_an_object_is_refused_as_usual(body: bytes) -> None:
    answer = signed_up().page("POST", "/v1/auth/refresh", body)
    assert answer.status in {400, 413}
    assert answer.code in {"malformed_json", "payload_too_large"}


def test_other_callers_see_no_change(anyone: Caller, holder: Holder) -> None:
    answer = anyone.post("/v1/auth/login", LOGIN)
    assert answer.body["mfa_token"]
    assert not answer.raw.cookies
    answer = holder.caller.refresh()
    assert answer.body["access_token"].startswith(JWT_START)
    assert not answer.raw.cookies


def test_cookies_without_the_header_are_ignored(alice: User) -> None:
    """Neither into the body of a refresh, nor to the login as a device."""
    jar = signed_up()
    assert jar.call("POST", "/v1/auth/refresh", {}).status == 400
    assert jar.call("POST", "/v1/auth/logout", {}).status == 400


def test_answers_to_the_console_are_not_stored() -> None:
    assert signed_up().page("GET", "/v1/whoami").headers["Cache-Control"] == "no-store"


def test_a_token_returned_on_any_path_is_hidden_from_scripts() -> None:
    """A token in the response of any other path is moved into a cookie, too."""
    factory = RequestFactory(headers={"X-Zonal-Console": "1", "Sec-Fetch-Site": "same-origin"})
    answer = ConsoleMiddleware(lambda _: JsonResponse({"access_token": "x.y.z", "name": "n"}))(
        factory.post("/v1/invitations/accept")
    )
    assert json.loads(answer.content) == {"name": "n"}
    assert answer.cookies[cookie("access")].value == "x.y.z"


def test_sql_results_are_not_changed() -> None:
    """A table may well have a column of such a name."""
    jar = signed_up()
    answer = jar.page("POST", "/v1/sql", {"query": "SELECT 'x' AS access_token"})
    assert answer.status == 200, json.dumps(answer.body)
    assert answer.body["rows"] == [{"access_token": "x"}]
