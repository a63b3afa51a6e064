"""Security notices: each change of a user's sign-in methods is mailed to the user."""

from datetime import timedelta
from typing import Final

import structlog
from django.utils import timezone

from accounts.models import User
from common import rate_limits
from common.emails import folded, mask_email
from outbox.messages import queue, templates
from outbox.messages.templates import console_link
from outbox.models import Delivery

# Of one kind, a day.
NOTICES_PER_RECEIVER: Final = 20
DAY: Final = timedelta(days=1)

log = structlog.get_logger(__name__)


def notify(
    user: User, notice: templates.Notice, *, to: str = "", **context: templates.Scalar
) -> None:
    """Queue a notice as ``queue`` does; an account without an address gets none.

    Each kind of notice has a daily limit for each address: anyone can sign up with an address of
    someone else, and repeat a change until that mailbox is full. What is beyond it is only logged.
    """
    receiver = folded(to or user.email)
    if not receiver:
        return
    limit = NOTICES_PER_RECEIVER
    kind = f"notice {notice}"
    if rate_limits.take(kind, receiver, limit=limit, window=DAY, now=timezone.now()):
        log.warning("notice_not_sent", notice=notice, user=str(user.pk), limit=limit)
        return
    queue_notice(user, notice, to=to, **context)


def queue_notice(
    user: User, notice: templates.Notice, *, to: str = "", **context: templates.Scalar
) -> Delivery:
    """Queue a notice to the user, in the transaction of the change that it reports.

    to: an address other than the user's current one: the old one for ``email_changed``, each
    further one for recovery. context: the template's own fields and, if known, ``address`` and
    ``agent`` of the request; the time, the masked account and a link to the console are added.
    Raises ValueError for a context that does not fit the template.
    """
    if notice not in templates.NOTICES:
        raise ValueError(f"{notice} is not a notice.")
    now = timezone.now()
    common = {
        "account": mask_email(user.email) if user.email else "an account without an address",
        "at": f"{now:%Y-%m-%d %H:%M} UTC",
        "security_link": console_link("security"),
    }
    return queue.send_mail(
        to or user.email,
        notice,
        common | context,
        organization_id=user.organization_id,
        user_id=user.pk,
    )
