"""Challenges: five tries, ten minutes, once; bound to user, method and factor."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Session, User
from audit.models import AuditEvent
from tests import inbox
from tests.cast import Caller, signed_in
from tests.scrape import growth
from tests.twofactor.holder import CHALLENGE, Holder, ask, log_in, pending, reply, with_totp
from twofactor.factors import throttle
from twofactor.models import Challenge, Factor

pytestmark = pytest.mark.django_db


def test_five_wrong_codes_end_a_challenge(holder: Holder) -> None:
    challenge = ask(pending(log_in()))
    for _ in range(5):
        answer = reply(challenge, holder.wrong_code())
        assert (answer.status, answer.code) == (401, "invalid_code")
    assert reply(challenge, holder.code()).code == "challenge_gone"


def test_a_wrong_code_is_audited_in_its_organization(holder: Holder) -> None:
    wrong = holder.wrong_code()
    reply(ask(pending(log_in())), wrong)
    reply(ask(holder.caller), wrong)
    events = AuditEvent.objects.filter(tag="api:challenge:verify").order_by("id")
    assert [event.data for event in events] == [
        {"method": "totp", "purpose": "login"},
        {"method": "totp", "purpose": "step_up"},
    ]
    for event in events:
        assert (event.outcome, event.actor_id) == ("refused", holder.user.pk)
        assert event.organization_id == holder.user.organization_id
        assert wrong not in str(vars(event))


def test_unknown_used_expired_and_exhausted_challenges_get_the_same_response(
    holder: Holder,
) -> None:
    used = ask(holder.caller)
    reply(used, holder.code())
    caller = pending(log_in())
    missed = ask(caller)
    for _ in range(5):
        reply(missed, holder.wrong_code())
    old = ask(pending(log_in()))
    unknown = Caller().post(f"{CHALLENGE}/unknown/verify", {"code": "123456"})
    answers = [unknown, reply(used, "123456"), reply(missed, "123456")]
    with time_machine.travel(timezone.now() + timedelta(minutes=10, seconds=1)):
        answers.append(reply(old, "123456"))
    bodies = [{k: v for k, v in a.body.items() if k != "request_id"} for a in answers]
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["code"] == "challenge_gone"


def test_malformed_codes_are_not_counted(holder: Holder) -> None:
    challenge = ask(pending(log_in()))
    for code in ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "+12345", "-12345", "12 345"]:
        answer = reply(challenge, code)
        assert (answer.status, answer.code) == (400, "malformed_code")
    backup = ask(pending(log_in()), "backup_code")
    for code in ["UUUU-UUUU-UUUU-UUUU", "ABCD-EFGH", "+BCD-EFGH-JKMN-PQRS", "١٢٣٤-EFGH-JKMN-PQRS"]:
        answer = reply(backup, code)
        assert (answer.status, answer.code) == (400, "malformed_code")
    assert set(Challenge.objects.values_list("attempts_left", flat=True)) == {5}


def test_a_repeated_request_gives_the_open_challenge_back(holder: Holder) -> None:
    caller = pending(log_in())
    assert ask(caller).body == ask(caller).body


def test_after_the_cool_down_there_is_a_new_one_and_the_old_one_is_void(holder: Holder) -> None:
    caller = pending(log_in())
    first = ask(caller)
    with time_machine.travel(timezone.now() + timedelta(seconds=31)):
        second = ask(caller)
        assert first.body["challenge_id"] != second.body["challenge_id"]
        assert reply(first, holder.code()).code == "challenge_gone"
        assert reply(second, holder.code()).status == 200


def test_an_unknown_method_is_400_and_one_not_set_up_409(holder: Holder) -> None:
    assert ask(holder.caller, "carrier_pigeon").code == "invalid_request"
    answer = ask(holder.caller, "sms")
    assert (answer.status, answer.code) == (409, "method_not_enabled")


def test_without_a_factor_there_is_nothing_to_ask(bob: User) -> None:
    answer = ask(signed_in(bob))
    assert (answer.status, answer.code) == (409, "no_second_factor")


def test_wrong_codes_throttle_the_factor_across_challenges(holder: Holder) -> None:
    start = timezone.now()
    with time_machine.travel(start, tick=False):
        for _ in range(2):
            challenge = ask(pending(log_in()))
            for _ in range(5):
                reply(challenge, holder.wrong_code())
        answer = ask(pending(log_in()))
        assert (answer.status, answer.code) == (429, "factor_slowed")
        assert int(answer.headers["Retry-After"]) >= 1
        waiting = int(answer.headers["Retry-After"])
    with time_machine.travel(start + timedelta(seconds=waiting)):
        assert reply(ask(pending(log_in())), holder.code()).status == 200
    assert Factor.objects.get(method="totp").failures == 0


def test_a_hundred_wrong_codes_lock_a_factor(holder: Holder) -> None:
    Factor.objects.filter(method="totp").update(failures=throttle.WORN_OUT)
    answer = ask(pending(log_in()), "totp")
    assert (answer.status, answer.code) == (403, "factor_worn_out")
    # Another factor still gets in.
    assert reply(ask(pending(log_in()), "backup_code"), holder.backup_codes[0]).status == 200


def test_step_up_raises_the_session_and_returns_no_token(holder: Holder) -> None:
    caller = signed_in(holder.user)
    answer = reply(ask(caller), holder.code())
    assert set(answer.body) == {"status", "aal", "valid_until"}
    assert answer.body["status"] == "verified"
    assert caller.get("/v1/whoami").body["aal"] == 2


def test_step_up_ends_with_its_session(holder: Holder) -> None:
    caller = signed_in(holder.user)
    challenge = ask(caller)
    caller.post("/v1/auth/logout", {"refresh_token": caller.refresh_token})
    assert reply(challenge, holder.code()).code == "challenge_gone"


def test_another_sessions_header_does_not_fit(holder: Holder) -> None:
    challenge = ask(holder.caller)
    path = f"{CHALLENGE}/{challenge.body['challenge_id']}/verify"
    body = {"code": holder.code()}
    assert signed_in(holder.user).post(path, body).code == "challenge_gone"
    assert Caller("garbage").post(path, body).code == "challenge_gone"
    assert holder.caller.post(path, body).status == 200


def queries(action: Any) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert action().status == 200
    kept = [q for q in captured.captured_queries if "SAVEPOINT" not in q["sql"]]
    return len(kept)


def test_status_and_challenge_cost_four_queries_beyond_the_principals(
    holder: Holder,
) -> None:
    caller = signed_in(holder.user)
    caller.get("/v1/whoami")
    assert queries(lambda: caller.get("/v1/auth/2fa/status")) <= 1 + 4
    assert queries(lambda: ask(caller)) <= 1 + 4
    challenge = ask(caller)
    # No header, so no principal: challenge, factor and session are locked, then written.
    assert queries(lambda: reply(challenge, holder.code())) <= 5
    assert Session.objects.filter(aal=2).count() == 2


def test_the_answer_that_signs_in_costs_five_more_for_the_session(holder: Holder) -> None:
    # The first sign-in from a device is mailed in addition.
    assert reply(ask(pending(log_in())), holder.code(steps=-1)).status == 200
    challenge = ask(pending(log_in()))
    assert queries(lambda: reply(challenge, holder.code())) <= 5 + 5


def test_a_pending_sign_in_gets_no_second_code(holder: Holder) -> None:
    caller = pending(log_in())
    assert queries(lambda: caller.get("/v1/auth/2fa/status")) <= 1 + 4
    assert queries(lambda: ask(caller)) <= 1 + 4


def test_a_sent_code_also_costs_queries_for_its_limits_and_its_message(alice: User) -> None:
    caller = signed_in(alice)
    begun = caller.post("/v1/auth/2fa/email/setup").body
    body = {"verification_id": begun["verification_id"], "code": inbox.email_code()}
    assert caller.post("/v1/auth/2fa/email/verify", body).status == 200
    # Two caps, the row, the job.
    assert queries(lambda: ask(caller)) <= 1 + 4 + 4
    challenge, code = ask(caller), inbox.email_code()
    assert queries(lambda: reply(challenge, code)) <= 5


def test_a_backup_code_also_costs_the_query_of_its_notice(holder: Holder) -> None:
    caller = signed_in(holder.user)
    challenge = ask(caller, "backup_code")
    # The code itself, how many are left, the cap of notices, the row, the job.
    assert queries(lambda: reply(challenge, holder.backup_codes[0])) <= 5 + 5


@pytest.mark.django_db(transaction=True)
def test_parallel_guesses_are_limited_to_five_tries(alice: User) -> None:
    holder = with_totp(alice)
    challenge = ask(pending(log_in()))
    code = holder.wrong_code()

    def once(_: int) -> int:
        try:
            return reply(challenge, code).status
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(once, range(20)))
    assert (statuses.count(401), statuses.count(410)) == (5, 15)


def test_sign_ins_are_counted_with_their_second_factor(holder: Holder) -> None:
    with growth() as seen:
        challenge = ask(pending(log_in()))
        reply(challenge, holder.wrong_code())
        assert reply(challenge, holder.code()).status == 200

    half = {"method": "password", "outcome": "pending", "second_factor": ""}
    whole = {"method": "second_factor", "outcome": "success", "second_factor": "totp"}
    assert seen.of("zonal_sign_ins_total", **half) == 1
    assert seen.of("zonal_sign_ins_total", **whole) == 1
    for outcome in ("right", "wrong"):
        labels = {"method": "totp", "purpose": "login", "outcome": outcome}
        assert seen.of("zonal_second_factor_answers_total", **labels) == 1
