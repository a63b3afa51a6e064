"""Send one mail, and classify failures of the mail backend; the SMTP backend."""

import re
import smtplib
from collections.abc import Mapping
from email.utils import parseaddr
from smtplib import (
    SMTPDataError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
    SMTPServerDisconnected,
)
from typing import Any, Final
from uuid import UUID

import structlog
from anymail.exceptions import AnymailAPIError, AnymailInvalidAddress, AnymailRecipientsRefused
from django.conf import settings
from django.core import mail
from django.core.mail.backends import smtp
from django.utils import timezone

from common.emails import is_mailed_as_written
from common.machine.reasons import reason
from outbox.failures import Failure, PermanentFailure, TemporaryFailure, retry_after_s
from outbox.messages import templates

log = structlog.get_logger(__name__)

# SMTP: reply codes from here on are permanent (RFC 5321 §4.2.1).
PERMANENT: Final = 500
# Enhanced status codes (RFC 3463) about the sender, the relay or a policy: a wrong password of the
# relay, a used-up quota. An operator can correct that while the mail waits.
NOT_THE_RECIPIENTS: Final = re.compile(rb"\s*5\.(?:1\.[78]|3\.\d+|4\.5|7\.\d+)\b")
# A relay that scans a mail before it accepts it takes longer than for all other replies (RFC 5321
# §4.5.3.2.6 has ten minutes). A client that hangs up before sends the mail again, and it arrives
# twice. Within the lease of a delivery (deliveries.LEASE).
ACCEPT_TIMEOUT_S: Final = 60


def send(
    to: str,
    template: str,
    context: Mapping[str, templates.Scalar],
    *,
    delivery_id: UUID,
) -> None:
    """Compose a mail and pass it to the backend of ZMAIL_URL.

    The Message-ID contains delivery_id, so that many mailboxes show a repeated mail once.
    Raises PermanentFailure, TemporaryFailure.
    """
    if not is_mailed_as_written(to):
        # Stored by an earlier version: the library would send to another mailbox, or raise.
        raise PermanentFailure("mail_address_refused")
    composed = templates.compose(template, context)
    message = _message(to, composed, delivery_id)
    try:
        # The block also closes a half-open connection: a server without the required STARTTLS.
        with mail.get_connection(**settings.MAIL_OPTIONS) as connection:
            connection.send_messages([message])
    except (SMTPException, AnymailRecipientsRefused, AnymailInvalidAddress, AnymailAPIError) as exc:
        # The provider's text contains the recipient; from None keeps it out of any log.
        raise _failure(exc) from None
    except OSError as exc:
        log.warning("mail_server_failed", reason=reason(exc))
        # Also a timeout, which smtplib does not always distinguish from a lost connection.
        raise TemporaryFailure("mail_server_away") from None


def _message(
    to: str, composed: templates.MailContent, delivery_id: UUID
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
            # Prevents out-of-office replies (RFC 3834 §5).
            "Auto-Submitted": "auto-generated",
        },
    )
    message.attach_alternative(composed.html, "text/html")
    return message


def _failure(exc: Exception) -> Failure:
    """Classify a failure: permanent if it concerns the recipient or the mail, else temporary.

    A refused sender, relay or login is temporary, even if the server reports it as permanent.
    """
    if isinstance(exc, SMTPRecipientsRefused):
        return _of_reply(*max(exc.recipients.values(), default=(0, b"")))
    if isinstance(exc, SMTPDataError):
        return _of_reply(exc.smtp_code, exc.smtp_error)
    if isinstance(exc, SMTPResponseException):
        log.warning("mail_server_failed", reason=reason(exc))
        return TemporaryFailure(f"smtp_{exc.smtp_code}")
    if isinstance(exc, SMTPServerDisconnected):
        log.warning("mail_server_failed", reason=reason(exc))
        return TemporaryFailure("mail_server_away")
    if isinstance(exc, AnymailRecipientsRefused | AnymailInvalidAddress):
        return PermanentFailure("mail_service_refused")
    if isinstance(exc, AnymailAPIError):
        headers = getattr(exc.response, "headers", {})
        wait_s = retry_after_s(headers.get("Retry-After", ""), now=timezone.now())
        return TemporaryFailure(f"mail_service_{exc.status_code or 'away'}", retry_after_s=wait_s)
    log.warning("mail_server_failed", reason=reason(exc))
    return TemporaryFailure(f"smtp_{type(exc).__name__}")


def _of_reply(code: int, text: bytes | str) -> Failure:
    """Classify a refusal of the recipient or of the mail by the server's reply."""
    reply = text.encode() if isinstance(text, str) else text
    if code >= PERMANENT and not NOT_THE_RECIPIENTS.match(reply):
        return PermanentFailure(f"smtp_{code}")
    return TemporaryFailure(f"smtp_{code}")


class _Connection(smtplib.SMTP):
    def data(self, msg: Any) -> Any:
        if self.sock is not None:
            self.sock.settimeout(ACCEPT_TIMEOUT_S)
        answer = super().data(msg)
        if self.sock is not None:
            self.sock.settimeout(self.timeout)
        return answer


class _TLSConnection(_Connection, smtplib.SMTP_SSL):
    pass


class EmailBackend(smtp.EmailBackend):
    """Django's, whose connections wait for the acceptance of a mail."""

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        """Return the class of connections."""
        return _TLSConnection if self.use_ssl else _Connection
