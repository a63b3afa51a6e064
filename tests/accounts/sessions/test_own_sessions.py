"""A user's own sessions are listed and end immediately; other users' are not."""

from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from environments import environments
from tests.cast import Caller, session_of, signed_in
from tests.parallel import at_once

pytestmark = pytest.mark.django_db
PATH = "/v1/auth/sessions"


def ids(caller: Caller) -> list[str]:
    return [row["id"] for row in caller.get(PATH).body["results"]]


def own_id(caller: Caller) -> str:
    return str(caller.get("/v1/whoami").body["session_id"])


def test_a_session_reports_its_address_client_and_time(alice: User) -> None:
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        caller = signed_in(alice, "sandbox")
        clock.shift(timedelta(minutes=5))
        sent = {"refresh_token": caller.refresh_token}
        refreshed = Caller().post("/v1/auth/refresh", sent, USER_AGENT="curl/8.5.0")
        caller = caller.holding(refreshed)
        (row,) = caller.get(PATH).body["results"]
        own = own_id(caller)
    assert row == {
        "id": own,
        "current": True,
        "environment": {"id": "sandbox", "name": "sandbox"},
        "address": "127.0.0.1",
        "agent": "curl/8.5.0",
        "aal": 1,
        "amr": ["pwd"],
        "created_at": int(start.timestamp()),
        "last_used_at": int((start + timedelta(minutes=5)).timestamp()),
        "ends_at": int((start + timedelta(days=30)).timestamp()),
    }


def test_the_newest_leads_and_one_is_the_current(alice: User, bob: User) -> None:
    first, second = signed_in(alice), signed_in(alice)
    signed_in(bob)
    rows = first.get(PATH).body["results"]
    assert [(row["id"], row["current"]) for row in rows] == [
        (own_id(second), False),
        (own_id(first), True),
    ]


def test_what_can_no_longer_be_used_is_not_listed(alice: User, settings: Settings) -> None:
    caller = signed_in(alice)
    environments.create(alice.organization_id, "gone")
    elsewhere = session_of(alice, "gone")
    Session.objects.filter(pk=elsewhere.pk).update(ended_at=None)
    ended, over, idle = session_of(alice), session_of(alice), session_of(alice)
    now = timezone.now()
    Session.objects.filter(pk=ended.pk).update(ended_at=now)
    Session.objects.filter(pk=over.pk).update(ends_at=now)
    tokens_over = now - timedelta(seconds=settings.ACCOUNTS.refresh_ttl_s + 1)
    Session.objects.filter(pk=idle.pk).update(rotated_at=tokens_over)
    elsewhere.environment.deleted_at = now
    elsewhere.environment.save()
    assert ids(caller) == [own_id(caller)]


def test_both_tokens_of_an_ended_session_are_refused_immediately(alice: User) -> None:
    here, there = signed_in(alice), signed_in(alice)
    assert here.call("DELETE", f"{PATH}/{own_id(there)}").status == 204
    # The id is known before; afterwards its own token says nothing any more.
    assert there.get("/v1/whoami").code == "session_revoked"
    assert there.refresh().code == "session_revoked"
    assert here.get("/v1/whoami").status == 200
    event = AuditEvent.objects.get(tag="api:session:delete")
    assert event.actor_id == alice.pk


def test_ending_the_present_one_is_signing_out(alice: User) -> None:
    caller = signed_in(alice)
    assert caller.call("DELETE", f"{PATH}/{own_id(caller)}").status == 204
    assert caller.get("/v1/whoami").code == "session_revoked"


def test_another_users_session_is_not_found(alice: User, bob: User, charlie: User) -> None:
    caller = signed_in(alice)
    ended = session_of(alice)
    Session.objects.filter(pk=ended.pk).update(ended_at=timezone.now())
    for key in (session_of(bob).pk, session_of(charlie).pk, ended.pk, "nonsense", bob.pk):
        answer = caller.call("DELETE", f"{PATH}/{key}")
        assert (answer.status, answer.code) == (404, "session_not_found")
    assert Session.objects.filter(user__in=[bob, charlie], ended_at=None).count() == 2


def test_all_others_end_and_are_counted(alice: User, bob: User) -> None:
    here, others, stranger = signed_in(alice), [signed_in(alice) for _ in range(3)], signed_in(bob)
    answer = here.call("DELETE", PATH)
    assert (answer.status, answer.body) == (200, {"ended": 3})
    assert {other.get("/v1/whoami").code for other in others} == {"session_revoked"}
    assert here.get("/v1/whoami").status == stranger.get("/v1/whoami").status == 200
    assert here.call("DELETE", PATH).body == {"ended": 0}
    assert AuditEvent.objects.filter(tag="api:session:delete_others").count() == 2


def test_an_ended_session_brings_the_one_it_was_switched_from_not_back(alice: User) -> None:
    """A thief's switch whose answer he never used must not keep him a way back."""
    thief, owner = signed_in(alice), signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        body = {"refresh_token": thief.refresh_token, "environment": "sandbox"}
        assert thief.post("/v1/auth/switch", body).status == 200
        assert owner.call("DELETE", PATH).body == {"ended": 1}
        clock.shift(timedelta(seconds=60))
        assert thief.refresh().code == "session_revoked"
        assert ids(owner) == [own_id(owner)]


@pytest.mark.django_db(transaction=True)
def test_a_switch_in_the_middle_of_it_carries_no_session_past(alice: User) -> None:
    for _ in range(5):
        owner, other = signed_in(alice), signed_in(alice)
        body = {"refresh_token": other.refresh_token, "environment": "sandbox"}
        at_once(
            lambda owner=owner: owner.call("DELETE", PATH),  # type: ignore[misc]  # bound now
            lambda body=body: Caller().post("/v1/auth/switch", body),  # type: ignore[misc]  # as above
        )
        assert ids(owner) == [own_id(owner)]
        owner.call("DELETE", f"{PATH}/{own_id(owner)}")


def test_using_a_session_writes_no_row_for_the_list(alice: User) -> None:
    """The time of the last use costs no write a request: it is known from the last refresh."""
    caller = signed_in(alice)
    caller.get("/v1/whoami")
    with CaptureQueriesContext(connection) as queries:
        caller.get("/v1/whoami")
    assert len(queries) == 1


def test_a_session_that_the_policy_restricts_can_still_end_others(alice: User) -> None:
    caller, other = signed_in(alice), signed_in(alice)
    alice.organization.mfa_required = True
    alice.organization.mfa_grace_period_days = 0
    alice.organization.save()
    assert caller.get("/v1/environments").code == "second_factor_due"
    assert len(ids(caller)) == 2
    assert caller.call("DELETE", PATH).body == {"ended": 1}
    assert other.refresh().code == "session_revoked"


def test_a_development_token_has_no_sessions(alice: User, settings: Settings) -> None:
    from accounts.tokens import development

    settings.ACCOUNTS = replace(
        settings.ACCOUNTS, dev_org_id=alice.organization_id, dev_secret="x" * 40
    )
    caller = Caller(development.token_for(alice.organization_id))
    assert caller.get(PATH).code == "permission_denied"
