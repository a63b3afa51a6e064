"""Ending all access that was opened before a recovery."""

from datetime import datetime
from uuid import UUID

from accounts.models import User
from accounts.sessions import sessions
from recovery.models import SecurityAnswer
from twofactor.models import Challenge, Enrolment, PendingSignIn
from twofactor.trusted_devices import devices


def end_access(user: User, *, reason: str, now: datetime) -> None:
    """End sessions, trusted devices, pending sign-ins and enrolments.

    Someone else may have started them. Other recoveries become invalid by their fingerprint.
    """
    sessions.end_all_of_user(user.pk, reason=reason, now=now)
    devices.delete_all(user.pk)
    for model in (PendingSignIn, Enrolment, Challenge):
        mine = model.unscoped.filter(user=user, used_at=None)  # unscoped: by the user's own key
        mine.update(used_at=now)


def on_account_reclaimed(user_id: UUID) -> None:
    """Delete the answers to security questions: an attacker could cause mails with them."""
    SecurityAnswer.unscoped.filter(user_id=user_id).delete()  # unscoped: by the user's own key
