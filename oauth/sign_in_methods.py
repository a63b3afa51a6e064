"""A user's sign-in methods (password, identities, passkeys); one has to remain."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from django.conf import settings

from accounts.models import User
from oauth.errors import LastLoginMethod
from oauth.models import Identity

# Methods of higher apps, by the user's id; they append theirs in ``AppConfig.ready()``.
FURTHER_METHODS: Final[list[Callable[[UUID], bool]]] = []


def can_sign_in(user: User) -> bool:
    """True if the user has a sign-in method; providers that are not configured do not count."""
    if user.has_usable_password():
        return True
    mine = Identity.objects.filter(organization_id=user.organization_id, user=user)
    if mine.filter(provider__in=list(settings.OAUTH.providers)).exists():
        return True
    return any(can(user.pk) for can in FURTHER_METHODS)


@contextmanager
def keep_one(user_id: UUID) -> Iterator[None]:
    """Refuse the removal inside the block if it removes the user's last sign-in method.

    Call inside a transaction; the user's row is locked, so that the second of two concurrent
    removals sees the first. Raises LastLoginMethod (409).
    """
    user = User.locked(user_id)
    could_sign_in = can_sign_in(user)
    yield
    if could_sign_in and not can_sign_in(user):
        raise LastLoginMethod
