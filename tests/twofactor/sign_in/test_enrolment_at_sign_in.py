"""A factor that has to be set up before a sign-in is through: by its own user alone."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyotp
import pytest
from django.db import connection

from accounts.models import Session, User
from environments.models import Organization
from tests.cast import Answer, Caller, signed_in
from tests.parallel import at_once
from tests.twofactor.holder import Holder, ask, log_in, pending, reply, set_up
from twofactor.factors import holdings
from twofactor.factors.holdings import Holdings
from twofactor.models import Factor
from twofactor.sign_in import second_factor_stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def required(home: Organization) -> Organization:
    """Require a second factor immediately."""
    home.mfa_required, home.mfa_grace_period_days = True, 0
    home.save()
    return home


def waiting() -> Caller:
    login = log_in()
    assert login.body["status"] == "mfa_enrollment_required"
    return pending(login)


def begun(caller: Caller) -> dict[str, Any]:
    answer = set_up(caller)
    assert answer.status == 200, answer.body
    seed = answer.body["secret"]
    return {"secret_id": answer.body["secret_id"], "code": pyotp.TOTP(seed).now()}


def verify(caller: Caller, body: dict[str, Any]) -> Answer:
    return caller.post("/v1/auth/2fa/totp/verify", body)


def test_a_password_thief_who_waits_cannot_enrol_after_the_owner(
    alice: User, required: Organization
) -> None:
    """Both begin to sign in; the owner sets a factor up; the thief's token is worth nothing."""
    thief, owner = waiting(), waiting()
    prepared = begun(thief)
    assert verify(owner, begun(owner)).status == 200
    assert verify(thief, prepared).code == "token_expired"
    assert set_up(thief).code == "token_expired"
    assert thief.post("/v1/auth/2fa/email/setup").code == "token_expired"
    assert Session.objects.filter(ended_at=None).count() == 1
    assert Factor.objects.filter(method="totp").count() == 1


def test_a_waiting_password_thief_cannot_enrol_after_the_owner_enrolled_in_a_session(
    alice: User, home: Organization
) -> None:
    owner = signed_in(alice)
    home.mfa_required, home.mfa_grace_period_days = True, 0
    home.save()
    thief = waiting()
    prepared = begun(thief)
    assert verify(owner, begun(owner)).status == 200
    assert verify(thief, prepared).code == "token_expired"


@pytest.mark.django_db(transaction=True)
def test_a_login_that_overlaps_the_owners_enrolment_cannot_enrol(
    alice: User, required: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thief's login finds no factor, the owner sets one up, and then the login goes on."""
    owner = waiting()
    prepared = begun(owner)

    def read_before_the_owner_enrols(user_id: UUID) -> Holdings:
        held = holdings.holdings_of(user_id)
        (answer,) = at_once(lambda: verify(owner, prepared))
        assert answer.status == 200
        return held

    with monkeypatch.context() as patch:
        late_login = SimpleNamespace(holdings_of=read_before_the_owner_enrols)
        patch.setattr(second_factor_stage, "holdings", late_login)
        thief = waiting()
    seed = Factor.objects.get(method="totp").secret
    answer = verify(thief, begun(thief))
    assert (answer.status, answer.code) == (410, "enrolment_gone")
    assert Factor.objects.get(method="totp").secret == seed
    assert Session.objects.count() == 1


def test_a_sign_in_that_waits_for_a_code_goes_on_when_a_factor_is_added(holder: Holder) -> None:
    waits = pending(log_in())
    body = begun(holder.caller)
    assert verify(holder.caller, body).status == 200
    backup = ask(waits, "backup_code")
    assert reply(backup, holder.backup_codes[0]).status == 200


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_enrolments_by_several_sign_ins_one_succeeds(
    alice: User, required: Organization
) -> None:
    callers = [waiting() for _ in range(6)]
    bodies = [begun(caller) for caller in callers]

    def once(number: int) -> int:
        try:
            return verify(callers[number], bodies[number]).status
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(once, range(6)))
    assert statuses.count(200) == 1, statuses
    assert set(statuses) <= {200, 401, 410}
    assert Session.objects.count() == 1
