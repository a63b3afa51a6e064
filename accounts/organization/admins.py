"""Mails to everybody who administers an organization."""

from django.db.models import Q

from accounts.delivery import notices
from accounts.delivery.templates import Notice, Scalar
from accounts.models import User


def notify_admins(organization_id: int, notice: Notice, **context: Scalar) -> None:
    """Queue a notice to every admin, in the caller's transaction."""
    admins = User.scoped.within_organization(organization_id).filter(
        Q(roles__contains=["admin"]) | Q(derived_roles__contains=["admin"]), is_active=True
    )
    for admin in admins:
        notices.notify(admin, notice, to="", **context)
