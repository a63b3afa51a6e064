"""Checks of what leaves the platform: mail, text messages, webhooks."""

import smtplib
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.core import mail
from django.utils import timezone

from common.machine.reasons import reason
from operations.doctor.findings import Finding, Level
from outbox import metrics
from outbox.conf import LOCAL_MAIL_BACKENDS
from outbox.models import Delivery

# Shorter than a delivery's timeout, because someone waits for the report.
TIMEOUT_S: Final = 5
LATE_S: Final = 300
# A single failing server is its owner's problem. If half of this many fail at the same time, the
# cause is the platform.
FEW_FAILING: Final = 5
MANY_FAILING: Final = 0.5


def check_mail() -> Iterator[Finding]:
    """Check that the mail relay accepts a connection and the credentials; nothing is sent."""
    options = settings.MAIL_OPTIONS
    level = Level.FAILED if settings.IS_PRODUCTION else Level.SKIPPED
    if "host" not in options:
        if settings.EMAIL_BACKEND in LOCAL_MAIL_BACKENDS:
            message = "Mail is not sent, it is shown on this machine."
            yield Finding("mail", level, message, "Set ZMAIL_URL.")
        else:
            service = settings.EMAIL_BACKEND.rsplit(".", 2)[1]
            yield Finding("mail", Level.OK, f"The service {service} is set; it was not called.")
        return
    where = f"{options['host']}:{options['port']}"
    try:
        with mail.get_connection(**options | {"timeout": TIMEOUT_S}):
            yield Finding("mail", Level.OK, f"{where} accepts a connection.")
    except (OSError, smtplib.SMTPException) as exc:
        message = f"{where} refuses or does not answer: {reason(exc)}"
        yield Finding("mail", Level.FAILED, message, "Check ZMAIL_URL and the relay.")


def check_sms() -> Iterator[Finding]:
    """Check that an SMS provider is configured, if SMS is offered."""
    if not settings.SMS_BACKEND:
        yield Finding("sms", Level.SKIPPED, "Text messages are not offered (ZSMS_URL).")
    elif settings.SMS_BACKEND.rpartition(".")[0].endswith((".console", ".file")):
        level = Level.FAILED if settings.IS_PRODUCTION else Level.SKIPPED
        message = "Text messages are not sent, they are shown on this machine."
        yield Finding("sms", level, message, "Set ZSMS_URL=twilio://…")
    else:
        yield Finding("sms", Level.OK, "A service is set; it was not called.")


def check_deliveries() -> Iterator[Finding]:
    """Check that no message failed in the last day."""
    since = timezone.now() - timedelta(days=1)
    everywhere = Delivery.objects.all()
    failed = everywhere.filter(state=Delivery.State.FAILED, created_at__gt=since).count()
    if failed:
        message = f"{failed} messages of the last day could not be sent."
        advice = "See `manage.py deliveries --state failed`; send again with `--retry-failed`."
        yield Finding("deliveries", Level.WARNING, message, advice)
    else:
        yield Finding("deliveries", Level.OK, "No message of the last day failed.")


def check_webhooks() -> Iterator[Finding]:
    """Check that no delivery is late, and that not half of the servers fail at the same time."""
    found = metrics.read_webhooks()
    if found.oldest_due_s > LATE_S:
        message = f"A delivery could have been sent {found.oldest_due_s:.0f} s ago."
        advice = "See that a task worker runs (`manage.py procrastinate worker`), and its log."
        yield Finding("webhooks", Level.WARNING, message, advice)
    total = found.answering + found.failing
    if found.failing >= FEW_FAILING and found.failing > MANY_FAILING * total:
        message = f"{found.failing} of {total} webhooks fail."
        advice = "See that this machine's task worker reaches https servers outside: DNS, firewall."
        yield Finding("webhooks", Level.WARNING, message, advice)
    elif found.oldest_due_s <= LATE_S:
        failed = found.deliveries["failed"]
        message = (
            f"{total} are sent in time; {failed} deliveries of the last day failed permanently."
        )
        yield Finding("webhooks", Level.OK, message)
