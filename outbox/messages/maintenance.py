"""Maintenance of deliveries: lost workers, lost jobs, expiry, retention, operator's retries."""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from procrastinate.exceptions import AlreadyEnqueued

from outbox.messages import queue
from outbox.models import Delivery

log = structlog.get_logger(__name__)

State = Delivery.State

# Longer than any attempt: every network operation has a timeout of seconds.
LEASE: Final = timedelta(minutes=5)
# A failed message waits this long for an operator's retry, then its content is wiped.
KEEP_FAILED: Final = timedelta(days=7)
# A finished row is kept this long as a record.
KEEP_FINISHED: Final = timedelta(days=30)
BATCH: Final = 1000
ATTEMPTS_PER_RETRY: Final = 10


class NotRetryable(Exception):
    """The delivery is being sent, or its content is gone; the message says which."""


def maintain(*, now: datetime) -> None:
    """Run all maintenance that is due; safe to repeat and to run concurrently."""
    _give_up(Q(state__in=[State.QUEUED, State.FAILED], expires_at__lte=now), "expired", now=now)
    _give_up(Q(state=State.FAILED, finished_at__lt=now - KEEP_FAILED), "", now=now)
    _release_lost(now=now)
    _enqueue_overdue(now=now)
    finished = Q(finished_at__lt=now - KEEP_FINISHED) & ~Q(state=State.FAILED)
    Delivery.objects.filter(finished).delete()


def retry(delivery: Delivery, *, now: datetime) -> None:
    """Attempt a failed or waiting delivery now, with ten more attempts. Raises NotRetryable."""
    with transaction.atomic():
        row = _locked(Q(pk=delivery.pk)).first()
        if row is None or not row.payload:
            raise NotRetryable("its content is gone: it was sent or given up")
        if row.state == State.SENDING:
            raise NotRetryable("it is being sent right now")
        row.state = State.QUEUED
        row.attempts_allowed = row.attempts + ATTEMPTS_PER_RETRY
        row.next_attempt_at = now
        row.finished_at = None
        row.save()
        queue.enqueue(row)


def _locked(which: Q) -> QuerySet[Delivery]:
    rows = Delivery.objects.select_for_update()
    return rows.filter(which)


def _give_up(which: Q, error: str, *, now: datetime) -> None:
    with transaction.atomic():
        for delivery in _locked(which)[:BATCH]:
            delivery.finish(State.GIVEN_UP, error=error or delivery.error, now=now)
            log.warning("delivery_given_up", delivery=str(delivery.pk), error=delivery.error)


def _release_lost(*, now: datetime) -> None:
    """Release deliveries whose worker never finished; they may have been sent already."""
    with transaction.atomic():
        for delivery in _locked(Q(state=State.SENDING, claimed_at__lt=now - LEASE))[:BATCH]:
            log.warning("delivery_worker_lost", delivery=str(delivery.pk))
            if delivery.attempts >= delivery.attempts_allowed:
                # A message that always crashes its worker must not be retried forever.
                delivery.finish(State.FAILED, error="worker_lost", now=now)
                continue
            delivery.state = State.QUEUED
            delivery.error = "worker_lost"
            delivery.next_attempt_at = now
            delivery.claimed_at = None
            delivery.save()
            _enqueue_once(delivery)


def _enqueue_overdue(*, now: datetime) -> None:
    """Queue a job for each overdue delivery, whose own job may be lost."""
    overdue = Delivery.objects.filter(state=State.QUEUED, next_attempt_at__lte=now - LEASE)
    for delivery in overdue.only("pk", "created_at", "expires_at")[:BATCH]:
        _enqueue_once(delivery)


def _enqueue_once(delivery: Delivery) -> None:
    """Queue at most one additional job, even if the workers are far behind."""
    try:
        with transaction.atomic():
            queue.enqueue(delivery, queueing_lock=f"delivery:{delivery.pk}")
    except AlreadyEnqueued:
        log.debug("delivery_queued_already", delivery=str(delivery.pk))
