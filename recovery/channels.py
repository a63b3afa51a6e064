"""Sending of recovery tokens, and notices of recoveries."""

from datetime import datetime
from typing import Final

import structlog
from django.conf import settings

from accounts import notices
from accounts.models import User
from common.crypto import decrypt
from common.emails import folded
from outbox.messages import queue
from outbox.messages.templates import Notice, Scalar, console_link
from recovery.models import Recovery
from recovery.tokens.channel_tokens import LIVES
from twofactor import sent_codes
from twofactor.errors import SendingTooOften
from twofactor.factors.holdings import Holdings
from twofactor.sent_codes import CodeOwner
from twofactor.sms.enrolment import is_of_allowed_country

# A day, over all client addresses.
STARTS_PER_ACCOUNT: Final = 50
# A day, from all devices that the owner has signed in from, when strangers have used that up.
STARTS_FROM_KNOWN_DEVICES: Final = 10
CANCEL_PAGE: Final = "recovery/cancel"

log = structlog.get_logger(__name__)


def destination(user: User, user_holdings: Holdings, *, channel: str) -> str:
    """Return the address or number of a channel; '' if the user has none that gets codes.

    Numbers are always verified, because they come from the second factor.
    """
    if channel == "email":
        return user.email
    if "sms" not in user_holdings.allowed or not queue.is_sms_configured():
        return ""
    number = decrypt(user_holdings.factors["sms"].secret)
    return number if is_of_allowed_country(number) else ""


def send_token(
    recovery: Recovery, user: User, to: str, token: str, *, recovery_id: str, now: datetime
) -> bool:
    """Queue the token's message; return False if the recipient's daily limit is reached.

    recovery_id: the client's id, for the link in the mail.
    """
    try:
        # Counted separately: anyone can start recoveries, and must not use up the limit for
        # sign-ins.
        sent_codes.check_rate_limit(
            f"recovery {recovery.channel}",
            to,
            CodeOwner(user.organization_id, user.pk),
            per_receiver=STARTS_PER_ACCOUNT + STARTS_FROM_KNOWN_DEVICES,
            now=now,
        )
    except SendingTooOften:
        log.warning("recovery_not_sent", recovery=str(recovery.pk), reason="sending_too_often")
        return False
    _queue(recovery, user, to, token, recovery_id)
    return True


def _queue(recovery: Recovery, user: User, to: str, token: str, recovery_id: str) -> None:
    minutes = int(LIVES[recovery.channel].total_seconds() // 60)
    if recovery.channel == "sms":
        queue.send_sms(
            to,
            f"{token} is your {settings.SERVICE_NAME} recovery code, good for {minutes} minutes. "
            "If you did not ask for it, ignore it. Never pass it on.",
            organization_id=user.organization_id,
            user_id=user.pk,
            expires_at=recovery.expires_at,
        )
    else:
        link = console_link(
            "recovery", recovery=recovery_id, token=token, org=str(user.organization_id)
        )
        queue.send_mail(
            to,
            "recovery_token",
            {"token": token, "minutes": minutes, "link": link},
            organization_id=user.organization_id,
            user_id=user.pk,
            expires_at=recovery.expires_at,
        )


def mail_addresses(user: User, user_holdings: Holdings) -> list[str]:
    """Return every address: the account's, and that of the e-mail factor if it differs."""
    found = [user.email] if user.email else []
    if "email" in user_holdings.factors:
        further = decrypt(user_holdings.factors["email"].secret)
        if folded(further) != folded(user.email):
            found.append(further)
    return found


def notify(
    user: User,
    user_holdings: Holdings,
    notice: Notice,
    *,
    except_address: str = "",
    **context: Scalar,
) -> None:
    """Queue a notice to every address except one, in the caller's transaction."""
    for address in mail_addresses(user, user_holdings):
        if folded(address) != folded(except_address):
            notices.notify(user, notice, to=address, **context)


def notify_with_cancel_link(
    user: User, user_holdings: Holdings, cancel_token: str, **context: str
) -> None:
    """Mail every address that a recovery was started, with a link to cancel it."""
    cancel_link = console_link(CANCEL_PAGE, token=cancel_token)
    notify(
        user,
        user_holdings,
        "recovery_started",
        cancel_link=cancel_link,
        cancel_token=cancel_token,
        **context,
    )


def text(user: User, user_holdings: Holdings, message: str) -> None:
    """Send a message to the number of the user's SMS factor, if there is one."""
    if "sms" not in user_holdings.factors or not queue.is_sms_configured():
        return
    number = decrypt(user_holdings.factors["sms"].secret)
    if is_of_allowed_country(number):
        queue.send_sms(
            number,
            message,
            organization_id=user.organization_id,
            user_id=user.pk,
        )
