"""The queue of every mail and text message: a row and a job in the caller's transaction.

No provider is called here, so an outage of a provider does not affect requests. The content is
encrypted in the row, and deleted after delivery or when the delivery is given up. A job contains
only the row's id.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from procrastinate.exceptions import AlreadyEnqueued

from common.crypto import encrypt
from common.emails import mask_email, mask_phone
from common.jobs import job
from outbox import deliveries
from outbox.messages import templates
from outbox.models import Delivery

log = structlog.get_logger(__name__)

DELIVER: Final = "outbox.messages.deliver"
# A message that is worthless after this time, such as a code, is sent before all others: ten
# thousand invitations take longer than a code is valid.
URGENT: Final = timedelta(hours=1)
URGENT_PRIORITY: Final = 10
E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")
# The longest text that Twilio splits into parts.
MAX_TEXT_CHARS: Final = 1600
# A failed message waits this long for an operator's retry, then its content is wiped.
KEEP_FAILED: Final = timedelta(days=7)


class SmsNotConfigured(Exception):
    """There is no SMS backend; callers check ``is_sms_configured`` first."""


def is_sms_configured() -> bool:
    """Return True if this installation can send text messages (ZSMS_URL)."""
    return bool(settings.SMS_BACKEND)


def send_mail(
    to: str,
    template: str,
    context: Mapping[str, templates.Scalar],
    *,
    organization_id: int | None,
    user_id: UUID | None = None,
    expires_at: datetime | None = None,
) -> Delivery:
    """Queue a mail; it is sent only if the caller's transaction commits.

    template, context: see ``templates.TEMPLATES``. expires_at: not sent after this time.
    Raises ValueError for an invalid address, and for a context that does not fit the template.
    """
    try:
        validate_email(to)
    except ValidationError as exc:
        raise ValueError("The recipient is not an e-mail address.") from exc
    templates.check(template, context)
    delivery = Delivery(
        kind=Delivery.Kind.MAIL,
        template=template,
        hint=mask_email(to),
        organization_id=organization_id,
        user_id=user_id,
        expires_at=expires_at,
    )
    return _queue(delivery, {"to": to, "template": template, "context": dict(context)})


def send_sms(
    to: str,
    text: str,
    *,
    organization_id: int | None,
    user_id: UUID | None = None,
    expires_at: datetime | None = None,
) -> Delivery:
    """Queue a text message; it is sent only if the caller's transaction commits.

    to: a number in E.164, ``+`` and digits. expires_at: not sent after this time.
    Raises SmsNotConfigured, and ValueError for another format or an empty or too long text.
    """
    if not is_sms_configured():
        raise SmsNotConfigured
    if not E164.fullmatch(to):
        raise ValueError("The recipient is not a number in E.164.")
    if not 0 < len(text) <= MAX_TEXT_CHARS:
        raise ValueError(f"A text has 1 to {MAX_TEXT_CHARS} characters.")
    delivery = Delivery(
        kind=Delivery.Kind.SMS,
        hint=mask_phone(to),
        organization_id=organization_id,
        user_id=user_id,
        expires_at=expires_at,
    )
    return _queue(delivery, {"to": to, "text": text})


def enqueue(delivery: Delivery, *, at: datetime | None = None, queueing_lock: str = "") -> None:
    """Queue an attempt at a delivery, now or at a time; the job contains only the id.

    queueing_lock: AlreadyEnqueued is raised while a job with the same lock is waiting.
    """
    job(
        DELIVER,
        at=at,
        queueing_lock=queueing_lock or None,
        priority=URGENT_PRIORITY if _is_urgent(delivery) else 0,
    ).defer(delivery_id=str(delivery.pk))


def _queue(delivery: Delivery, content: dict[str, Any]) -> Delivery:
    delivery.payload = encrypt(json.dumps(content))
    delivery.next_attempt_at = timezone.now()
    with transaction.atomic():
        delivery.save(force_insert=True)
        enqueue(delivery)
    return delivery


def _is_urgent(delivery: Delivery) -> bool:
    ends_at = delivery.expires_at
    return ends_at is not None and ends_at - delivery.created_at <= URGENT


def retry(delivery: Delivery, *, now: datetime) -> None:
    """Attempt a failed or waiting delivery now, with ten more attempts. Raises NotRetryable."""
    with transaction.atomic():
        row = deliveries.retry(delivery, now=now)
        if not row.payload:
            raise deliveries.NotRetryable("its content is gone: it was sent or given up")
        enqueue(row)


def maintain(*, now: datetime) -> None:
    """Run all maintenance that is due; safe to repeat and to run concurrently."""
    ended = Q(expires_at__lte=now) | Q(finished_at__lt=now - KEEP_FAILED)
    deliveries.give_up(Delivery, Q(state=Delivery.State.FAILED) & ended, now=now)
    released = deliveries.maintain(Delivery, "finished_at", now=now)
    # Those whose own job may be lost.
    overdue = Delivery.objects.filter(
        state=Delivery.State.QUEUED, next_attempt_at__lte=now - deliveries.LEASE
    )
    for delivery in [*released, *overdue[: deliveries.BATCH]]:
        try:
            with transaction.atomic():
                # At most one additional job, even if the workers are far behind.
                enqueue(delivery, queueing_lock=f"delivery:{delivery.pk}")
        except AlreadyEnqueued:
            log.debug("delivery_queued_already", delivery=str(delivery.pk))
