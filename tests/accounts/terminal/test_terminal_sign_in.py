"""A program at a terminal signs in when its user allows it in a browser."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Session, TerminalSignIn, User
from accounts.sessions.authentication import TRUSTED_DEVICE
from accounts.terminal import terminal_sign_ins
from audit.models import AuditEvent
from environments.models import Organization
from outbox.models import Delivery
from tests.cast import PASSWORD, Answer, Caller, member, signed_in
from tests.sign_in_methods.terminal import PATH, VERIFIER, allow, exchange, start
from tests.twofactor.holder import ask, reply, with_totp


def read(caller: Caller, started: Answer) -> Answer:
    """Read a request, as the page does."""
    return caller.get(f"{PATH}/{started.body['request_id']}")


def deny(caller: Caller, started: Answer) -> Answer:
    """Deny a request."""
    return caller.post(f"{PATH}/{started.body['request_id']}/deny")


def assert_gone(answer: Answer) -> None:
    assert (answer.status, answer.code) == (410, "terminal_sign_in_gone")


@pytest.mark.django_db
def test_the_page_shows_who_asks(alice: User) -> None:
    begun = start(port=50000)
    assert begun.body["page_url"].endswith(f"/console/terminal#request={begun.body['request_id']}")
    shown = read(signed_in(alice), begun).body
    assert shown["matching_code"] == begun.body["matching_code"]
    assert (shown["host"], shown["address"]) == ("laptop", "127.0.0.1")
    assert (shown["is_same_address"], shown["environment"]) == (True, "live")
    assert begun.headers["Cache-Control"] == "no-store"


@pytest.mark.django_db
def test_the_page_shows_no_sentence_of_the_programs(alice: User) -> None:
    browser = signed_in(alice)
    misleading = start(environment="live. Zonal's support asks you to allow this.")
    assert read(browser, misleading).body["environment"] == ""
    assert read(browser, start(environment="SANDBOX")).body["environment"] == "sandbox"


@pytest.mark.django_db
def test_the_page_warns_of_another_address(alice: User) -> None:
    begun = start()
    TerminalSignIn.objects.update(address="192.0.2.7")
    shown = read(signed_in(alice), begun).body
    assert (shown["address"], shown["is_same_address"]) == ("192.0.2.7", False)


@pytest.mark.django_db
def test_an_allowed_program_has_a_session_of_its_own(alice: User) -> None:
    browser = signed_in(alice)
    allowed = allow(browser, start(port=50000))
    assert allowed.body["port"] == 50000
    program = Caller().holding(exchange(allowed))
    who = program.get("/v1/whoami").body
    assert (who["email"], who["aal"]) == ("alice@example.com", 1)
    listed = browser.get("/v1/auth/sessions").body["results"]
    assert who["session_id"] in {each["id"] for each in listed}
    assert browser.call("DELETE", f"/v1/auth/sessions/{who['session_id']}").status == 204
    assert program.get("/v1/whoami").status == 401
    assert browser.get("/v1/whoami").status == 200


@pytest.mark.django_db
def test_the_program_is_signed_in_to_the_environment_it_asked_for(alice: User) -> None:
    browser = signed_in(alice)
    in_sandbox = exchange(allow(browser, start(environment="sandbox")))
    assert in_sandbox.body["environment"]["id"] == "sandbox"
    missing = allow(browser, start(environment="nowhere"))
    assert (missing.status, missing.code) == (404, "environment_not_found")


@pytest.mark.django_db
def test_the_trail_names_both_the_browser_and_the_program(alice: User) -> None:
    browser = signed_in(alice)
    exchange(allow(browser, start()))
    assert deny(browser, start()).status == 200
    kinds = ("api:terminal_sign_in:allow", "api:session:create", "api:terminal_sign_in:deny")
    rows = AuditEvent.objects.filter(tag__in=kinds, actor_id=alice.pk).order_by("id")
    assert [row.tag for row in rows] == list(kinds)
    assert rows[0].data == {"host": "laptop", "asked_from": "127.0.0.1"}
    assert rows[1].data["method"] == "terminal"


@pytest.mark.django_db
def test_a_program_on_a_new_network_is_mailed_about(alice: User) -> None:
    browser = signed_in(alice)
    Caller().holding(exchange(allow(browser, start())))
    first = Delivery.objects.count()
    body = {"code": allow(browser, start()).body["code"], "code_verifier": VERIFIER}
    Caller().post(f"{PATH}/token", body, USER_AGENT="zonal/0.1.0 (elsewhere)")
    assert Delivery.objects.count() == first + 1


@pytest.mark.django_db
def test_a_code_works_once_and_for_its_program_only(alice: User) -> None:
    browser = signed_in(alice)
    allowed = allow(browser, start())
    assert_gone(exchange(allowed, VERIFIER[::-1]))
    assert_gone(exchange(allowed))
    again = allow(browser, start())
    assert exchange(again).status == 200
    assert_gone(exchange(again))


@pytest.mark.django_db
def test_an_allowed_or_denied_request_cannot_be_allowed_again(alice: User) -> None:
    browser = signed_in(alice)
    begun = start()
    allowed = allow(browser, begun)
    for answer in (allow(browser, begun), read(browser, begun), deny(browser, begun)):
        assert_gone(answer)
    assert exchange(allowed).status == 200
    refused = start()
    assert deny(browser, refused).status == 200
    assert_gone(allow(browser, refused))


@pytest.mark.django_db
def test_requests_and_codes_end(alice: User) -> None:
    browser = signed_in(alice)
    begun = start()
    allowed = allow(browser, start())
    lifetimes = {each.expires_at - timezone.now() for each in TerminalSignIn.objects.all()}
    assert max(lifetimes) <= timedelta(minutes=10)
    assert min(lifetimes) <= timedelta(minutes=2)
    TerminalSignIn.objects.update(expires_at=timezone.now())
    assert_gone(read(browser, begun))
    assert_gone(allow(browser, begun))
    assert_gone(exchange(allowed))
    assert terminal_sign_ins.delete_old(now=timezone.now()) == 2


@pytest.mark.django_db
def test_the_tables_hold_neither_request_nor_code(alice: User) -> None:
    begun = start()
    allowed = allow(signed_in(alice), begun)
    row = str(TerminalSignIn.objects.values().get())
    assert begun.body["request_id"] not in row
    assert allowed.body["code"] not in row


@pytest.mark.django_db
def test_allowing_takes_the_second_factor_and_hands_it_on(alice: User) -> None:
    early = signed_in(alice)
    holder = with_totp(alice)
    begun = start()
    refused = allow(early, begun)
    assert (refused.status, refused.code) == (403, "step_up_required")
    assert reply(ask(early), holder.code()).status == 200
    program = Caller().holding(exchange(allow(early, begun)))
    who = program.get("/v1/whoami").body
    assert (who["aal"], "otp" in who["amr"]) == (2, True)


@pytest.mark.django_db
def test_a_proof_gets_no_younger_by_handing_it_on(alice: User) -> None:
    holder = with_totp(alice)
    proven_at = timezone.now() - timedelta(minutes=14)
    Session.objects.update(mfa_time=proven_at, auth_time=proven_at)
    program = Caller().holding(exchange(allow(holder.caller, start())))
    session = Session.objects.get(pk=program.get("/v1/whoami").body["session_id"])
    assert (session.auth_time, session.mfa_time) == (proven_at, proven_at)


@pytest.mark.django_db
def test_a_factor_set_up_in_the_meantime_is_required(alice: User) -> None:
    early = signed_in(alice)
    allowed = allow(early, start())
    # In another session, so that the one that has allowed it proves nothing.
    holder = with_totp(alice)
    due = exchange(allowed)
    assert due.body["status"] == "mfa_required"
    assert "access_token" not in due.body
    assert reply(ask(Caller(due.body["mfa_token"])), holder.code()).status == 200


@pytest.mark.django_db
def test_the_code_dies_with_the_session_that_has_allowed_it(alice: User) -> None:
    browser = signed_in(alice)
    allowed = allow(browser, start())
    ended = browser.post("/v1/auth/logout", {"refresh_token": browser.refresh_token})
    assert ended.status == 204
    assert_gone(exchange(allowed))


@pytest.mark.django_db
def test_the_code_dies_with_the_password(home: Organization) -> None:
    browser = signed_in(member(home, "dora@example.com", password=PASSWORD))
    allowed = allow(browser, start())
    body = {"current_password": PASSWORD, "password": "nobody else has read this one"}
    assert browser.post("/v1/auth/password", body).status == 200
    assert browser.get("/v1/whoami").status == 200
    assert_gone(exchange(allowed))


@pytest.mark.django_db
def test_a_disabled_user_gets_no_session(alice: User, home: Organization) -> None:
    allowed = allow(signed_in(alice), start())
    User.objects.filter(pk=alice.pk).update(is_active=False)
    before = Session.objects.count()
    refused = exchange(allowed)
    assert refused.status in {401, 410}
    assert Session.objects.count() == before


@pytest.mark.django_db
def test_a_trusted_browser_does_not_make_the_program_trusted(alice: User) -> None:
    browser = signed_in(alice)
    Session.objects.update(amr=["pwd", TRUSTED_DEVICE])
    program = Caller().holding(exchange(allow(browser, start())))
    assert program.get("/v1/whoami").body["amr"] == ["pwd"]


@pytest.mark.django_db
def test_only_users_allow(alice: User) -> None:
    begun = start()
    assert read(Caller(), begun).status == 401
    assert allow(Caller(), begun).status == 401
    made = signed_in(alice).post("/v1/api-keys", {"name": "machine", "role": "admin"})
    key = Caller(made.body["key"])
    for answer in (read(key, begun), allow(key, begun), deny(key, begun)):
        assert answer.status == 403


@pytest.mark.django_db
def test_each_user_allows_in_their_own_name(alice: User, home: Organization) -> None:
    bob = member(home, "bob@example.com", role="reader")
    program = Caller().holding(exchange(allow(signed_in(bob), start())))
    who = program.get("/v1/whoami").body
    assert (who["email"], who["roles"]) == ("bob@example.com", ["reader"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "a\u202eb"},
        {"host": "p\u0430ypal"},
        {"host": "your bank"},
        {"host": ""},
        {"host": "h" * 65},
        {"port": 80},
        {"port": 65536},
        {"code_challenge": "short"},
        {"redirect_to": "https://evil.example.com"},
    ],
)
def test_what_would_mislead_or_lead_elsewhere_is_refused(wrong: dict[str, object]) -> None:
    assert start(**wrong).status == 400
    assert not TerminalSignIn.objects.exists()


@pytest.mark.django_db
def test_the_starts_of_a_network_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_sign_ins, "STARTS_PER_NETWORK", 2)
    assert [start().status for _ in range(3)] == [201, 201, 429]


@pytest.mark.django_db(transaction=True)
def test_of_parallel_exchanges_one_succeeds(alice: User) -> None:
    allowed = allow(signed_in(alice), start())

    def once(_: int) -> int:
        try:
            return exchange(allowed).status
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(once, range(4)))
    assert statuses == [200, 410, 410, 410]
