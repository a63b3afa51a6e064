"""A user's sign-in methods (password, identities, passkeys); one has to remain."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from accounts.models import User
from oauth.errors import LastLoginMethod
from oauth.models import Identity


def can_sign_in(user: User) -> bool:
    """True if the user has a sign-in method; providers that are not configured do not count."""
    if user.has_usable_password():
        return True
    mine = Identity.scoped.within_organization(user.organization_id).filter(user=user)
    if mine.filter(provider__in=list(settings.OAUTH.providers)).exists():
        return True
    return any(import_string(path)(user.pk) for path in settings.OTHER_SIGN_IN_METHODS)


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
