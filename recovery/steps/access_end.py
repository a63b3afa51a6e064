"""Ending all access that was opened before a recovery."""

from datetime import datetime
from typing import Final

from accounts.models import User
from accounts.sessions import sessions
from twofactor.models import Challenge, Enrolment, PendingSignIn
from twofactor.trusted_devices import devices

# In mails.
ENDED: Final = "all sessions and trusted devices were ended"


def end_access(user: User, *, reason: str, now: datetime) -> None:
    """End sessions, trusted devices, pending sign-ins and enrolments.

    Someone else may have started them. Other recoveries become invalid by their fingerprint.
    """
    sessions.end_all_of_user(user.pk, reason=reason, now=now)
    devices.delete_all(user.pk)
    for model in (PendingSignIn, Enrolment, Challenge):
        mine = model.objects.filter(user=user, used_at=None)
        mine.update(used_at=now)
