"""The transports of mails and text messages."""

import json
import traceback
from uuid import UUID

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from common.crypto import decrypt
from common.machine.reasons import reason
from outbox import deliveries
from outbox.failures import Failure, TemporaryFailure
from outbox.messages import mail, queue
from outbox.models import Delivery

log = structlog.get_logger(__name__)

State = Delivery.State


def attempt(delivery_id: UUID) -> None:
    """Attempt a delivery, unless it is finished, in progress, or expired."""
    for claimed in deliveries.claim(Delivery, [delivery_id], now=timezone.now()):
        failure = _send(claimed)
        with transaction.atomic():
            settled = deliveries.settle(claimed, failure, now=timezone.now())
            if settled is not None and settled.state == State.QUEUED:
                queue.enqueue(settled, at=settled.next_attempt_at)
        if settled is not None:
            _log_outcome(settled)


def _send(delivery: Delivery) -> Failure | None:
    try:
        content = json.loads(decrypt(delivery.payload))
        if delivery.kind == Delivery.Kind.MAIL:
            mail.send(**content, delivery_id=delivery.pk)
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
