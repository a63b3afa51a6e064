"""Memberships at providers, asked for again while nobody is looking: derived roles alone follow.

What a provider does not say changes nothing: an outage, a limit, an organization that restricts
this application. What it denies takes the role at once. Tokens that it no longer takes say nothing
either, but whoever withdraws them must not keep a role by that: it lapses a day after the provider
last confirmed it.
"""

import json
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from accounts.oauth import account_matching, identities
from accounts.oauth.memberships import derived_roles
from accounts.oauth.models import Identity
from accounts.oauth.providers import registry
from accounts.oauth.providers.backend import Client, CredentialsRefused
from accounts.oauth.providers.profile import Credentials, Memberships
from platform_site.lib.crypto import decrypt
from platform_site.lib.errors import PlatformError

INTERVAL: Final = timedelta(hours=1)
UNCONFIRMED_FOR: Final = timedelta(hours=24)
# Renewed a little before their end, so that they do not end between two calls.
EARLY_S: Final = 60
AT_ONCE: Final = 1000

log = structlog.get_logger(__name__)


def due(*, now: datetime) -> list[UUID]:
    """Give the identities to ask about, who has waited longest first."""
    waited = Q(synced_at=None) | Q(synced_at__lte=now - INTERVAL)
    # With memberships but without tokens: their mapping, or the provider, was taken away.
    bears_on_roles = ~Q(credentials="") | ~Q(memberships=[])
    rows = Identity.unscoped.filter(waited, bears_on_roles)  # unscoped: housekeeping
    return list(rows.order_by("synced_at").values_list("pk", flat=True)[:AT_ONCE])


def sync(identity_id: UUID, *, now: datetime) -> None:
    """Ask one identity's provider about its memberships, and have its user's roles follow.

    No transaction may be open: the provider takes its time.
    """
    rows = Identity.unscoped.select_related("user")  # unscoped: the job's own row, by its id
    identity: Identity | None = rows.filter(pk=identity_id).first()
    if identity is None:
        return
    groups = [row.group for row in derived_roles.mappings_of(identity)]
    if not (groups and identity.credentials and identity.user.is_active):
        _settle(identity, None, now=now)
        return
    try:
        client = registry.client(identity.provider, kept={})
        credentials = _usable(client, identity, now=now)
        found = client.memberships(credentials, identity.subject, groups)
    except CredentialsRefused:
        _lapse(identity, groups, now=now)
    except PlatformError as exc:
        log.info("membership_sync_failed", identity=str(identity.pk), error=exc.code)
        _settle(identity, Memberships(unknown=tuple(groups)), now=now)
    else:
        _settle(identity, found, now=now)


def _usable(client: Client, identity: Identity, *, now: datetime) -> Credentials:
    """Give tokens that have not expired, renewed where they are about to.

    Raises CredentialsRefused, ProviderUnavailable, ProviderError.
    """
    credentials = Credentials(*json.loads(decrypt(identity.credentials)))
    is_fresh = not credentials.expires_at or credentials.expires_at - EARLY_S > now.timestamp()
    if is_fresh:
        return credentials
    if not credentials.refresh_token:
        raise CredentialsRefused
    renewed = client.renew(credentials)
    before, identity.credentials = identity.credentials, identities.sealed(renewed)
    # At once, as the old refresh token may be void; and not over those of a sign-in meanwhile.
    Identity.unscoped.filter(  # unscoped: by its own key
        pk=identity.pk, credentials=before
    ).update(credentials=identity.credentials)
    return renewed


def _lapse(identity: Identity, groups: list[str], *, now: datetime) -> None:
    """Keep for a while what the provider will not say again."""
    confirmed_at = identity.confirmed_at
    if confirmed_at is not None and now < confirmed_at + UNCONFIRMED_FOR:
        _settle(identity, Memberships(unknown=tuple(groups)), now=now)
    else:
        _settle(identity, None, now=now)


def _settle(identity: Identity, found: Memberships | None, *, now: datetime) -> None:
    """Take over what was found; None ends it: no tokens, no memberships, until the next sign-in."""
    with transaction.atomic():
        user = account_matching.lock(identity.user)
        rows = Identity.unscoped.filter(pk=identity.pk)  # unscoped: by its own key
        current: Identity | None = rows.first()
        if current is None or current.credentials != identity.credentials:
            # Unlinked, or signed in meanwhile: that is news, and this is not.
            return
        current.user = user
        if found is None:
            found, current.credentials = Memberships(), ""
            current.save(update_fields=["credentials"])
        derived_roles.follow(None, current, found, now=now)
