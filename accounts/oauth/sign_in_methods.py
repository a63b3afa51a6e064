"""Sign-in methods of a user, one of which has to remain: password, identities, passkeys."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from accounts.models import User
from accounts.oauth.errors import LastLoginMethod
from accounts.oauth.models import Identity


def can_sign_in(user: User) -> bool:
    """Return True if the user has a sign-in method; a provider that is off does not count."""
    if user.has_usable_password():
        return True
    mine = Identity.scoped.within_organization(user.organization_id).filter(user=user)
    if mine.filter(provider__in=list(settings.OAUTH.providers)).exists():
        return True
    return any(import_string(path)(user.pk) for path in settings.OTHER_SIGN_IN_METHODS)


@contextmanager
def keep_one(user_id: UUID) -> Iterator[None]:
    """Refuse to remove what a user signs in with, if nothing else is left to sign in with.

    Call inside a transaction, around the removal; the user's row is locked, so that of two removals
    at once the second one sees the first. Raises LastLoginMethod (409).
    """
    user = lock_user(user_id)
    could_sign_in = can_sign_in(user)
    yield
    if could_sign_in and not can_sign_in(user):
        raise LastLoginMethod


def lock_user(user_id: UUID) -> User:
    """Hold a user's row, by which changes to sign-in methods wait for each other."""
    rows = User.unscoped.select_for_update(no_key=True)  # unscoped: the principal's own, by key
    found: User = rows.get(pk=user_id)
    return found
