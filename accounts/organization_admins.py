"""The admins of an organization, and notices to all of them."""

from urllib.parse import urlsplit

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Q, QuerySet

from accounts import notices
from accounts.models import User
from outbox.messages.templates import Notice, Scalar
from outbox.models import WebhookEndpoint


def able_admins(organization_id: int) -> QuerySet[User]:
    """Return the admins who can act; an organization must have at least one.

    The role must be given by an admin, because a derived role can end at any time at the provider.
    The account must have an address, because without one its sessions may only add one. It must be
    in use: an account created in advance has neither a password nor a verified address before it is
    accepted.
    """
    is_in_use = ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX) | Q(
        email_verified_at__isnull=False
    )
    admins: QuerySet[User] = User.objects.filter(organization_id=organization_id).filter(
        is_in_use, ~Q(email=""), roles__contains=["admin"], is_active=True
    )
    return admins


def notify_admins(organization_id: int, notice: Notice, **context: Scalar) -> None:
    """Queue a notice to every admin, in the caller's transaction."""
    admins = User.objects.filter(organization_id=organization_id).filter(
        Q(roles__contains=["admin"]) | Q(derived_roles__contains=["admin"]), is_active=True
    )
    # In one order: each notice locks the counter of its address.
    for admin in admins.order_by("pk"):
        notices.notify(admin, notice, to="", **context)


def notify_of_disabled_webhook(endpoint: WebhookEndpoint, reason: str) -> None:
    """Queue a notice to every admin that a webhook was disabled, in the caller's transaction."""
    # At many services the rest of the URL is a secret.
    host = urlsplit(endpoint.url).hostname or ""
    notify_admins(endpoint.organization_id, "webhook_disabled", host=host, reason=reason)
