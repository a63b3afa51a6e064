"""The outbox: mails, text messages and webhooks' events are rows until they are sent.

A claim is committed before the row is sent and the result after, so that no transaction is open
during network calls. A repeated or parallel job finds the row claimed or finished, and does
nothing. If a worker dies in between, the row's lease ends and it is sent a second time with the
same id. Sending twice is preferred to not sending.

``messages.sending`` and ``webhooks.dispatch`` send what is claimed, in jobs of the task worker.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, TypeVar
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet

from outbox.failures import Failure, PermanentFailure
from outbox.models import OutboxRow

log = structlog.get_logger(__name__)

Row = TypeVar("Row", bound=OutboxRow)

# Longer than any attempt: every network operation has a timeout of seconds.
LEASE: Final = timedelta(minutes=5)
# A finished row is kept this long as a record.
KEEP: Final = timedelta(days=30)
BATCH: Final = 1000


class NotRetryable(Exception):
    """The row is not sent again; the message says why."""


def claim(model: type[Row], keys: Collection[UUID], *, now: datetime) -> list[Row]:
    """Claim those of these rows that are queued, for one attempt each; give up expired ones."""
    claimed: list[Row] = []
    with transaction.atomic():
        for row in _locked(model, Q(pk__in=keys, state=OutboxRow.QUEUED)):
            if row.expires_at is not None and row.expires_at <= now:
                _give_up(row, now=now)
                continue
            row.state, row.claimed_at, row.next_attempt_at = row.SENDING, now, None
            row.attempts += 1
            row.save()
            claimed.append(row)
    return claimed


def settle(claimed: Row, failure: Failure | None, *, now: datetime) -> Row | None:
    """Record an attempt's result; return the row, None if another claim decides.

    A row that is queued again has its next attempt at ``next_attempt_at``.
    """
    model = type(claimed)
    with transaction.atomic():
        this_claim = Q(pk=claimed.pk, attempts=claimed.attempts, finished_at=None)
        row = _locked(model, this_claim).first()
        if row is None:
            # The lease ended during this attempt, or the row was removed.
            log.warning("delivery_settled_elsewhere", delivery=str(claimed.pk))
        elif failure is None:
            row.finish(model.DONE, now=now)
        elif isinstance(failure, PermanentFailure):
            row.finish(model.GIVEN_UP, error=failure.error, now=now)
        else:
            _try_later(row, failure, now=now)
    return row


def retry(row: Row, *, now: datetime) -> Row:
    """Queue a row for a new series of attempts; the caller queues the job. Raises NotRetryable."""
    with transaction.atomic():
        found = _locked(type(row), Q(pk=row.pk)).first()
        if found is None or found.state == OutboxRow.SENDING:
            raise NotRetryable("it is being sent right now")
        found.attempts_allowed = found.attempts + len(found.WAITS_S) + 1
        found.finished_at = None
        found.queue_again(now, error=found.error)
    return found


def give_up(model: type[Row], which: Q, *, now: datetime) -> None:
    """Give up rows that nobody sends any more."""
    with transaction.atomic():
        for row in _locked(model, which)[:BATCH]:
            _give_up(row, now=now)


def maintain(model: type[Row], aged_by: str, *, now: datetime) -> list[Row]:
    """Give up expired rows, forget old ones, and queue those of lost workers, which are returned.

    aged_by: the indexed time from which an old one is counted. Safe to repeat and to run
    concurrently.
    """
    give_up(model, Q(state=OutboxRow.QUEUED, expires_at__lte=now), now=now)
    old = Q(**{f"{aged_by}__lt": now - KEEP})
    unfinished = Q(state__in=[OutboxRow.QUEUED, OutboxRow.SENDING])
    model.objects.filter(old & ~unfinished).delete()
    released: list[Row] = []
    with transaction.atomic():
        lost = Q(state=OutboxRow.SENDING, claimed_at__lt=now - LEASE)
        for row in _locked(model, lost)[:BATCH]:
            log.warning("delivery_worker_lost", delivery=str(row.pk))
            if row.wait_s() is None:
                # What always crashes its worker must not be retried forever.
                row.finish(OutboxRow.FAILED, error=model.LOST, now=now)
                continue
            row.queue_again(now, error=model.LOST)
            released.append(row)
    return released


def _locked(model: type[Row], which: Q) -> QuerySet[Row]:
    rows: QuerySet[Row] = model.objects.select_for_update()
    # In one order, so that two of these wait for each other and never both.
    return rows.filter(which).order_by("pk")


def _give_up(row: OutboxRow, *, now: datetime) -> None:
    row.finish(row.GIVEN_UP, error=row.error or "expired", now=now)
    log.warning("delivery_given_up", delivery=str(row.pk), error=row.error)


def _try_later(row: OutboxRow, failure: Failure, *, now: datetime) -> None:
    wait_s = row.wait_s()
    if wait_s is None:
        row.finish(OutboxRow.FAILED, error=failure.error, now=now)
        return
    at = now + timedelta(seconds=max(wait_s, failure.retry_after_s))
    if row.expires_at is not None and at >= row.expires_at:
        row.finish(row.GIVEN_UP, error=failure.error, now=now)
    else:
        row.queue_again(at, error=failure.error)
