"""Memberships at providers, refreshed in the background; only derived roles change with them.

Without a clear answer nothing changes: an outage, a rate limit, an organization that restricts this
application. A denied membership removes the role immediately. Tokens that the provider refuses say
nothing about memberships, but a user must not keep a role by withdrawing them: the role ends a day
after the provider last confirmed it.
"""

import json
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from common.crypto import decrypt
from common.errors import PlatformError
from oauth import account_matching, identities
from oauth.memberships import derived_roles
from oauth.models import Identity
from oauth.providers import configured
from oauth.providers.backend import CredentialsRefused, ProviderBackend
from oauth.providers.profile import Memberships, ProviderTokens

INTERVAL: Final = timedelta(hours=1)
UNCONFIRMED_LIMIT: Final = timedelta(hours=24)
# Tokens are refreshed a little early, so that they do not expire between two calls.
REFRESH_EARLY_S: Final = 60
BATCH: Final = 1000

log = structlog.get_logger(__name__)


def due(*, now: datetime) -> list[UUID]:
    """Return the identities to ask about, those that waited longest first."""
    waited = Q(synced_at=None) | Q(synced_at__lte=now - INTERVAL)
    # Memberships without tokens: the mapping, or the provider, was removed.
    affects_roles = ~Q(credentials="") | ~Q(memberships=[])
    rows = Identity.objects.filter(waited, affects_roles)
    return list(rows.order_by("synced_at").values_list("pk", flat=True)[:BATCH])


def sync(identity_id: UUID, *, now: datetime) -> None:
    """Ask one identity's provider about its memberships and derive the user's roles.

    No transaction may be open: the provider may be slow.
    """
    rows = Identity.objects.select_related("user")
    identity: Identity | None = rows.filter(pk=identity_id).first()
    if identity is None:
        return
    groups = [row.group for row in derived_roles.mappings_of(identity)]
    if not (groups and identity.credentials and identity.user.is_active):
        _store(identity, None, now=now)
        return
    try:
        backend = configured.backend(identity.provider, session={})
        credentials = _fresh_credentials(backend, identity, now=now)
        found = backend.memberships(credentials, identity.subject, groups)
    except CredentialsRefused:
        _keep_for_a_day(identity, groups, now=now)
    except PlatformError as exc:
        log.info("membership_sync_failed", identity=str(identity.pk), error=exc.code)
        _store(identity, Memberships(unknown=tuple(groups)), now=now)
    else:
        _store(identity, found, now=now)


def _fresh_credentials(
    backend: ProviderBackend, identity: Identity, *, now: datetime
) -> ProviderTokens:
    """Return tokens that have not expired, refreshed if they are about to.

    Raises CredentialsRefused, ProviderUnavailable, ProviderError.
    """
    credentials = ProviderTokens(*json.loads(decrypt(identity.credentials)))
    is_fresh = (
        not credentials.expires_at or credentials.expires_at - REFRESH_EARLY_S > now.timestamp()
    )
    if is_fresh:
        return credentials
    if not credentials.refresh_token:
        raise CredentialsRefused
    renewed = backend.refresh_credentials(credentials)
    before, identity.credentials = identity.credentials, identities.encrypt_credentials(renewed)
    # Stored immediately, because the old refresh token may be invalid now; but tokens of a
    # concurrent sign-in are not overwritten.
    Identity.objects.filter(pk=identity.pk, credentials=before).update(
        credentials=identity.credentials
    )
    return renewed


def _keep_for_a_day(identity: Identity, groups: list[str], *, now: datetime) -> None:
    """Keep memberships that the provider no longer confirms, for a limited time."""
    confirmed_at = identity.confirmed_at
    if confirmed_at is not None and now < confirmed_at + UNCONFIRMED_LIMIT:
        _store(identity, Memberships(unknown=tuple(groups)), now=now)
    else:
        _store(identity, None, now=now)


def _store(identity: Identity, found: Memberships | None, *, now: datetime) -> None:
    """Store what was found; None removes tokens and memberships until the next sign-in."""
    with transaction.atomic():
        user = account_matching.lock(identity.user)
        rows = Identity.objects.filter(pk=identity.pk)
        current: Identity | None = rows.first()
        if current is None or current.credentials != identity.credentials:
            # Unlinked, or signed in again in the meantime, which is more recent.
            return
        current.user = user
        if found is None:
            found, current.credentials = Memberships(), ""
            current.save(update_fields=["credentials"])
        derived_roles.update(None, current, found, now=now)
