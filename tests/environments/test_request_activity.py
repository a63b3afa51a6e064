"""API requests by organization and hour: what is counted, added up, shown, kept and deleted."""

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.utils import timezone

from accounts.models import User
from common.metrics import organization_tally, publishing
from common.metrics.organization_tally import ORGANIZATIONS, Answers, Key, OrganizationTally
from environments import request_activity
from environments.models import Organization, RequestHour
from platform_site.staff import activity
from tests.cast import Caller, signed_in

pytestmark = pytest.mark.django_db
PATH = "/v1/organization/activity"


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    taken()


def taken() -> dict[Key, Answers]:
    """Return what was counted since the last call."""
    publishing.publish()
    return ORGANIZATIONS.take()


def test_each_organization_s_requests_add_up(alice: User, charlie: User) -> None:
    caller = signed_in(alice)
    taken()
    for path in ("/v1/whoami", "/v1/whoami", "/v1/environments/absent"):
        caller.get(path)
    ORGANIZATIONS.count(alice.organization_id, 503)
    request_activity.write()
    signed_in(charlie).get("/v1/whoami")
    caller.get("/v1/whoami")
    request_activity.write()
    request_activity.write()
    found = caller.get(PATH).body
    assert (found["requests"], found["refused"], found["failed"]) == (5, 1, 1)
    assert sum(hour["requests"] for hour in found["hours"]) == 5
    # Charlie's are their own.
    assert RequestHour.objects.filter(organization_id=charlie.organization_id).get().requests >= 1


def test_a_request_without_a_valid_token_has_no_organization(alice: User) -> None:
    Caller("x").get("/v1/whoami")
    Caller().get("/v1/whoami")
    assert taken() == {}


def test_readers_do_not_see_what_the_organization_does(bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(roles=["reader"])
    assert signed_in(bob).get(PATH).status == 403


def test_hours_before_the_last_day_are_not_shown_and_deleted_after_eight(alice: User) -> None:
    now = timezone.now()
    for hours in (1, 30, 24 * 9):
        RequestHour.objects.create(
            organization_id=alice.organization_id,
            hour=now - timedelta(hours=hours),
            requests=hours,
            refused=0,
            failed=0,
        )
    assert signed_in(alice).get(PATH).body["requests"] == 1
    activity.roll_up(now=now)
    assert sorted(RequestHour.objects.values_list("requests", flat=True)) == [1, 30]


def test_nothing_is_lost_while_the_database_is_away(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        def cursor(self) -> None:
            raise DatabaseError

    ORGANIZATIONS.count(alice.organization_id, 200)
    with monkeypatch.context() as patch:
        patch.setattr(request_activity, "connection", Away())
        request_activity.write()
    ORGANIZATIONS.count(alice.organization_id, 200)
    request_activity.write()
    assert sum(row.requests for row in RequestHour.objects.all()) == 2


def test_what_waits_to_be_written_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(organization_tally, "MAX_ENTRIES", 3)
    tally = OrganizationTally()
    for organization_id in (1, 2, 3, 4, 1):
        tally.count(organization_id, 200)
    taken = tally.take()
    assert {key[0]: answers.requests for key, answers in taken.items()} == {1: 2, 2: 1, 3: 1}
    tally.count(9, 200)
    tally.put_back(taken)
    assert {key[0] for key in tally.take()} == {9, 1, 2}


def test_counts_of_a_deleted_organization_are_dropped(alice: User, charlie: User) -> None:
    ORGANIZATIONS.count(alice.organization_id, 200)
    ORGANIZATIONS.count(charlie.organization_id, 200)
    Organization.objects.filter(pk=charlie.organization_id).update(deleted_at=timezone.now())
    ORGANIZATIONS.count(10**9, 200)
    request_activity.write()
    assert RequestHour.objects.get().organization_id == alice.organization_id
