"""One mail, from its template to the mail backend, and what a failure of the backend means."""

from collections.abc import Mapping
from email.utils import parseaddr
from smtplib import (
    SMTPDataError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
    SMTPServerDisconnected,
)
from typing import Final
from uuid import UUID

from anymail.exceptions import AnymailAPIError, AnymailInvalidAddress, AnymailRecipientsRefused
from django.conf import settings
from django.core import mail
from django.utils import timezone

from accounts.delivery import templates
from accounts.delivery.failures import Delayed, Failure, Refused, retry_after_s

# SMTP: from here on a reply is permanent (RFC 5321 §4.2.1).
PERMANENT: Final = 500


def send(
    to: str,
    template: str,
    context: Mapping[str, templates.Scalar],
    *,
    organization_id: int | None,
    delivery_id: UUID,
) -> None:
    """Compose a mail and hand it to the backend of ZMAIL_URL.

    organization_id: told in the mail, since recovery asks for it; None for none.
    Its Message-ID is made of delivery_id: a mail that is sent twice is one to many mailboxes.
    Raises Refused and Delayed.
    """
    composed = templates.compose(template, context, organization_id=organization_id)
    message = _message(to, composed, delivery_id)
    try:
        # The block closes what was opened half as well: a server without the STARTTLS asked for.
        with mail.get_connection(**settings.MAIL_OPTIONS) as connection:
            connection.send_messages([message])
    except (SMTPException, AnymailRecipientsRefused, AnymailInvalidAddress, AnymailAPIError) as exc:
        # The provider's words hold the recipient; from None keeps them out of any log.
        raise _failure(exc) from None
    except OSError:
        # A timeout, too, which smtplib tells from a lost connection only at times.
        raise Delayed("mail_server_away") from None


def _message(
    to: str, composed: templates.Composed, delivery_id: UUID
) -> mail.EmailMultiAlternatives:
    sender = settings.DEFAULT_FROM_EMAIL
    domain = parseaddr(sender)[1].rpartition("@")[2]
    message = mail.EmailMultiAlternatives(
        composed.subject,
        composed.text,
        sender,
        [to],
        headers={
            "Message-ID": f"<{delivery_id}@{domain}>",
            # No out-of-office answers (RFC 3834 §5).
            "Auto-Submitted": "auto-generated",
        },
    )
    message.attach_alternative(composed.html, "text/html")
    return message


def _failure(exc: Exception) -> Failure:
    """Tell what speaks of the recipient or the mail, and is final, from what may be repaired.

    A refused sender or sign-in is ours to repair, however permanent the server thinks it.
    """
    if isinstance(exc, SMTPRecipientsRefused):
        codes = [code for code, _ in exc.recipients.values()]
        code = max(codes, default=0)
        return Refused(f"smtp_{code}") if code >= PERMANENT else Delayed(f"smtp_{code}")
    if isinstance(exc, SMTPDataError) and exc.smtp_code >= PERMANENT:
        return Refused(f"smtp_{exc.smtp_code}")
    if isinstance(exc, SMTPResponseException):
        return Delayed(f"smtp_{exc.smtp_code}")
    if isinstance(exc, SMTPServerDisconnected):
        return Delayed("mail_server_away")
    if isinstance(exc, AnymailRecipientsRefused | AnymailInvalidAddress):
        return Refused("mail_service_refused")
    if isinstance(exc, AnymailAPIError):
        headers = getattr(exc.response, "headers", {})
        wait_s = retry_after_s(headers.get("Retry-After", ""), now=timezone.now())
        return Delayed(f"mail_service_{exc.status_code or 'away'}", retry_after_s=wait_s)
    return Delayed(f"smtp_{type(exc).__name__}")
