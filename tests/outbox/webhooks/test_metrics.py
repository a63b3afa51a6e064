"""Webhooks in numbers: the web server tells what the task worker did."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from outbox.models import WebhookDelivery, WebhookEndpoint
from tests.outbox.webhooks.support import subscribe
from tests.scrape import scrape

pytestmark = pytest.mark.django_db


def add(endpoint: WebhookEndpoint, state: str, *, minutes: int) -> None:
    """Add a delivery that became due some minutes ago."""
    then = timezone.now() - timedelta(minutes=minutes)
    WebhookDelivery.objects.create(
        organization_id=endpoint.organization_id,
        endpoint=endpoint,
        event="member.added",
        state=state,
        created_at=then,
        expires_at=then + timedelta(days=1),
        next_attempt_at=then if state == "queued" else None,
    )


def test_deliveries_of_the_last_day_are_counted_by_state(alice: User) -> None:
    endpoint = subscribe(alice.organization_id, "member.added")
    for state, number in (("delivered", 3), ("failed", 2), ("queued", 1)):
        for _ in range(number):
            add(endpoint, state, minutes=5)
    add(endpoint, "failed", minutes=25 * 60)
    seen = scrape()
    counts = {
        state: seen.value("zonal_webhook_deliveries", state=state)
        for state in WebhookDelivery.State.values
    }
    assert counts == {"queued": 1, "sending": 0, "delivered": 3, "failed": 2}


def test_only_what_could_be_sent_now_is_late(alice: User) -> None:
    endpoint = subscribe(alice.organization_id, "member.added")
    assert scrape().value("zonal_webhook_oldest_seconds") == 0
    add(endpoint, "queued", minutes=20)
    assert 1200 <= scrape().value("zonal_webhook_oldest_seconds") < 1260
    add(endpoint, "sending", minutes=1)
    assert scrape().value("zonal_webhook_oldest_seconds") == 0
    WebhookDelivery.objects.filter(state="sending").delete()
    WebhookEndpoint.objects.update(resting_until=timezone.now() + timedelta(minutes=1))
    assert scrape().value("zonal_webhook_oldest_seconds") == 0


def test_webhooks_that_fail_are_counted_while_they_are_enabled(alice: User) -> None:
    for failing_since, state in (
        (None, "enabled"),
        (timezone.now(), "enabled"),
        (timezone.now(), "disabled"),
    ):
        endpoint = subscribe(alice.organization_id, "member.added")
        endpoint.failing_since, endpoint.state = failing_since, state
        endpoint.save()
    seen = scrape()
    assert seen.value("zonal_webhook_endpoints", state="answering") == 1
    assert seen.value("zonal_webhook_endpoints", state="failing") == 1
