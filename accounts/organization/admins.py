"""The admins of an organization: those it can rely on, and mails to all of them."""

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Q, QuerySet

from accounts.delivery import notices
from accounts.delivery.templates import Notice, Scalar
from accounts.models import User


def able_admins(organization_id: int) -> QuerySet[User]:
    """Return the admins who can act, of whom an organization must keep one.

    By hand: a derived role can go at any time, by somebody else's hand. With an address: without
    one, a session may only give another. And in use: an account that was made beforehand and not
    accepted has neither a password nor a proven address, as every other account does.
    """
    is_in_use = ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX) | Q(
        email_verified_at__isnull=False
    )
    admins: QuerySet[User] = User.scoped.within_organization(organization_id).filter(
        is_in_use, ~Q(email=""), roles__contains=["admin"], is_active=True
    )
    return admins


def notify_admins(organization_id: int, notice: Notice, **context: Scalar) -> None:
    """Queue a notice to every admin, in the caller's transaction."""
    admins = User.scoped.within_organization(organization_id).filter(
        Q(roles__contains=["admin"]) | Q(derived_roles__contains=["admin"]), is_active=True
    )
    for admin in admins:
        notices.notify(admin, notice, to="", **context)
