"""The return from a provider: the code exchanged, the person proven, the browser sent on."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction

from accounts.audit import audit
from accounts.oauth import account_matching, redirects, transactions
from accounts.oauth.errors import ProviderError
from accounts.oauth.models import ProviderGrant, ProviderVisit
from accounts.oauth.providers import http, registry
from accounts.oauth.providers.backend import why
from accounts.oauth.providers.profile import Profile
from accounts.oauth.secrets import digest, new_secret, seal
from accounts.signin.signin import Way
from platform_site.lib.errors import PlatformError
from platform_site.lib.principals import PlatformRequest

CODE_LIFE: Final = timedelta(seconds=60)

log = structlog.get_logger(__name__)


def finish(
    request: PlatformRequest, provider: str, returned: Mapping[str, str], *, now: datetime
) -> str:
    """Give the URL to send the browser on to: with a one-time code, or with what went wrong.

    Nothing is made here but the code: accounts and links wait for its exchange.
    Raises what leaves no address that is safe to send the browser to: ProviderNotConfigured (404),
    StateInvalid (400), TooManyAttempts (429).
    """
    registry.settings_of(provider)
    transactions.refuse_flood(request, now)
    try:
        visit = transactions.returned(request, provider, returned.get("state", ""))
    except PlatformError as exc:
        _note(request, provider, exc)
        raise
    try:
        kept = transactions.claim(visit, now=now)
        profile = _prove(provider, kept, returned)
        if visit.user_id is None:
            account_matching.refuse_unwritable(profile)
    except PlatformError as exc:
        _note(request, provider, exc, visit)
        return redirects.with_error(visit.redirect_to, exc, visit.client_state)
    return redirects.with_code(visit.redirect_to, _grant(visit, profile, now), visit.client_state)


def _prove(provider: str, kept: dict[str, object], returned: Mapping[str, str]) -> Profile:
    """Say who came; calls the provider, so no transaction may be open."""
    client = registry.client(provider, kept=kept, returned=returned)
    try:
        # A provider with many mapped groups is asked many times, while somebody waits.
        with http.within(3 * settings.OAUTH_TIMEOUT_S):
            profile = client.finish()
    except PlatformError as exc:
        log.warning("external_sign_in_failed", provider=provider, error=exc.code, **why(exc))
        raise
    if not profile.has_subject():
        raise ProviderError
    return profile


def _grant(visit: ProviderVisit, profile: Profile, now: datetime) -> str:
    code = new_secret()
    grant = ProviderGrant(
        digest=digest(code),
        kind=ProviderGrant.Kind.CODE,
        provider=visit.provider,
        profile=seal(profile.as_json()),
        code_challenge=visit.code_challenge,
        environment=visit.environment,
        user_id=visit.user_id,
        session_id=visit.session_id,
        expires_at=now + CODE_LIFE,
    )
    grant.save(force_insert=True)
    return code


def _note(
    request: PlatformRequest,
    provider: str,
    error: PlatformError,
    visit: ProviderVisit | None = None,
) -> None:
    user = visit.user if visit is not None else None
    with transaction.atomic():
        audit.add(
            request,
            "api:identity:create" if user is not None else "api:session:create",
            outcome="refused",
            organization_id=user.organization_id if user is not None else None,
            actor_id=user.pk if user is not None else None,
            actor=str(user) if user is not None else "",
            data={"way": str(Way.EXTERNAL), "provider": provider, "error": error.code},
        )
