"""Hooks of the second factor for changes of a user (accounts.account_lifecycle)."""

from uuid import UUID

from django.utils import timezone

from accounts.models import User
from twofactor.factors import active_factors, holdings
from twofactor.models import Challenge, Enrolment, PendingSignIn
from twofactor.trusted_devices import devices


def on_trust_ended(user_id: UUID) -> None:
    """Delete trusted devices and pending sign-ins, because the password they depend on has changed.

    A sign-in that is being finished concurrently is skipped, because its row is locked; it is
    refused, because the user has changed (sessions.open_session).
    """
    devices.delete_all(user_id)
    waiting = PendingSignIn.objects.filter(user_id=user_id, used_at=None)
    free = waiting.select_for_update(skip_locked=True).values_list("pk", flat=True)
    PendingSignIn.objects.filter(pk__in=list(free)).update(used_at=timezone.now())


def on_user_removed(user_id: UUID) -> None:
    """Delete a user's factors and devices, in the lock order of challenges."""
    holdings.holdings_of(user_id, lock=True)
    for model in (Challenge, Enrolment, PendingSignIn):
        model.objects.filter(user_id=user_id).delete()
    active_factors.reset(User.objects.get(pk=user_id))
