"""What ends with a recovery: everything that was opened before it."""

from datetime import datetime
from uuid import UUID

from accounts.models import User
from accounts.sessions import sessions
from recovery.models import SecurityAnswer
from twofactor.models import Challenge, Enrolment, PendingSignIn
from twofactor.trusted_devices import devices


def end_access(user: User, *, reason: str, now: datetime) -> None:
    """End sessions, trusted devices, and sign-ins and set-ups under way.

    Somebody else may have set them up. Other recoveries end by their
    fingerprint (recoveries.py).
    """
    sessions.end_all_of_user(user.pk, reason=reason, now=now)
    devices.delete_all(user.pk)
    for model in (PendingSignIn, Enrolment, Challenge):
        mine = model.unscoped.filter(user=user, used_at=None)  # unscoped: by the user's own key
        mine.update(used_at=now)


def on_account_reclaimed(user_id: UUID) -> None:
    """Forget the answers to security questions: they would let a stranger have mails caused."""
    SecurityAnswer.unscoped.filter(user_id=user_id).delete()  # unscoped: by the user's own key
