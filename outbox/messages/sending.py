"""One attempt at one delivery: claim the row, send the message, record the result.

The claim is committed before the provider is called and the result after, so that no transaction is
open during network calls. A repeated or parallel job finds the row claimed or finished and does
nothing. If a worker dies after the provider accepted the message and before the result is
committed, the row's lease ends and the message is sent a second time (``maintenance``), a mail with
the same Message-ID. Sending twice is preferred to not sending.
"""

import json
import traceback
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from common.crypto import decrypt
from common.machine.reasons import reason
from outbox.messages import mail, queue
from outbox.messages.failures import Failure, PermanentFailure, TemporaryFailure
from outbox.models import Delivery

log = structlog.get_logger(__name__)

# 15 s, 30 s, 1 min … 1 h: ten attempts (Delivery.attempts_allowed) in about two hours.
FIRST_WAIT_S: Final = 15
MAX_WAIT_S: Final = 3600
# The random part of the wait spreads the attempts after an outage.
JITTER: Final = 0.2

State = Delivery.State
ENDED: Final = frozenset({State.SENT, State.FAILED, State.GIVEN_UP})


def attempt(delivery_id: UUID) -> None:
    """Attempt a delivery, unless it is finished, in progress, or expired."""
    claimed = _claim(delivery_id, now=timezone.now())
    if claimed is None:
        return
    failure = _send(claimed)
    _settle(claimed, failure, now=timezone.now())


def wait_s(delivery: Delivery) -> float:
    """Return the seconds until the next attempt, by the number of earlier ones."""
    base = min(FIRST_WAIT_S << (delivery.attempts - 1), MAX_WAIT_S)
    # The low bits of a UUIDv7 are random.
    return base * (1 + JITTER * (delivery.pk.int % 1000) / 1000)


def _locked(delivery_id: UUID) -> Delivery | None:
    rows = Delivery.objects.select_for_update()
    found: Delivery | None = rows.filter(pk=delivery_id).first()
    return found


def _claim(delivery_id: UUID, *, now: datetime) -> Delivery | None:
    with transaction.atomic():
        delivery = _locked(delivery_id)
        if delivery is None or delivery.state != State.QUEUED:
            return None
        if delivery.expires_at is not None and delivery.expires_at <= now:
            delivery.finish(State.GIVEN_UP, error=delivery.error or "expired", now=now)
            _log_outcome(delivery)
            return None
        delivery.state = State.SENDING
        delivery.attempts += 1
        delivery.claimed_at = now
        delivery.save(update_fields=["state", "attempts", "claimed_at"])
    return delivery


def _send(delivery: Delivery) -> Failure | None:
    try:
        content = json.loads(decrypt(delivery.payload))
        if delivery.kind == Delivery.Kind.MAIL:
            mail.send(**content, organization_id=delivery.organization_id, delivery_id=delivery.pk)
        else:
            import_string(settings.SMS_BACKEND)(**content, **settings.SMS_OPTIONS)
    except Failure as failure:
        return failure
    except Exception as exc:  # noqa: BLE001 - a backend may raise anything, and its text may contain the recipient
        last = traceback.extract_tb(exc.__traceback__)[-1]
        # What an operator has set wrongly names no recipient.
        said = {"reason": reason(exc)} if isinstance(exc, ImproperlyConfigured) else {}
        log.error(  # noqa: TRY400 - the trace ends with the exception's text
            "delivery_fault",
            delivery=str(delivery.pk),
            kind=type(exc).__name__,
            where=f"{last.filename}:{last.lineno}",
            **said,
        )
        return TemporaryFailure(f"fault_{type(exc).__name__}")
    return None


def _settle(claimed: Delivery, failure: Failure | None, *, now: datetime) -> None:
    with transaction.atomic():
        delivery = _locked(claimed.pk)
        if delivery is None or delivery.attempts != claimed.attempts or delivery.state in ENDED:
            # The lease ended during this attempt: the worker that has claimed it since then
            # decides.
            log.warning("delivery_settled_elsewhere", delivery=str(claimed.pk))
            return
        if failure is None:
            delivery.finish(State.SENT, now=now)
        elif isinstance(failure, PermanentFailure):
            delivery.finish(State.GIVEN_UP, error=failure.error, now=now)
        else:
            _schedule_retry(delivery, failure, now=now)
    _log_outcome(delivery)


def _schedule_retry(delivery: Delivery, failure: Failure, *, now: datetime) -> None:
    at = now + timedelta(seconds=max(wait_s(delivery), failure.retry_after_s))
    if delivery.expires_at is not None and at >= delivery.expires_at:
        delivery.finish(State.GIVEN_UP, error=failure.error, now=now)
    elif delivery.attempts >= delivery.attempts_allowed:
        delivery.finish(State.FAILED, error=failure.error, now=now)
    else:
        delivery.state = State.QUEUED
        delivery.error = failure.error[:60]
        delivery.next_attempt_at = at
        delivery.claimed_at = None
        delivery.save(update_fields=["state", "error", "next_attempt_at", "claimed_at"])
        queue.enqueue(delivery, at=at)


def _log_outcome(delivery: Delivery) -> None:
    outcome = "delayed" if delivery.state == State.QUEUED else delivery.state
    write = log.info if delivery.state == State.SENT else log.warning
    write(
        "delivery",
        outcome=str(outcome),
        delivery=str(delivery.pk),
        kind=delivery.kind,
        template=delivery.template,
        recipient=delivery.hint,
        attempts=delivery.attempts,
        error=delivery.error,
    )
