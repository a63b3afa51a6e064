"""Visits to a provider: begun for a sign-in or a link, bound to a browser, returned from once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

from accounts import limits
from accounts.errors import TooManyAttempts
from accounts.oauth import browser_binding, redirects
from accounts.oauth.errors import CodeGone, StateInvalid, StateUsed
from accounts.oauth.models import ProviderVisit
from accounts.oauth.providers import registry
from accounts.oauth.secrets import digest, is_same, new_secret, seal, unseal
from platform_site.lib.addresses import client_address, network_of
from platform_site.lib.principals import PlatformRequest, Principal

LIFE: Final = timedelta(seconds=browser_binding.LIFE_S)
WINDOW: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client wants of a visit: where to return, with which ``state``, for whose verifier.

    redirect_to: '' for the console. environment: to sign in to, '' for the last used.
    """

    redirect_to: str
    state: str
    code_challenge: str
    environment: str = ""


@dataclass(frozen=True, slots=True)
class Departure:
    """Where a browser is sent, and the secret it keeps meanwhile."""

    url: str
    secret: str
    by_post: bool


def depart(request: PlatformRequest, provider: str, wish: Wish, *, now: datetime) -> Departure:
    """Begin a sign-in in the browser that asks.

    Raises ProviderNotConfigured (404), RedirectNotAllowed (400), TooManyAttempts (429).
    """
    visit, url = _plan(provider, wish, now=now)
    by_post = registry.returns_by_post(provider)
    refuse_flood(request, now)
    secret = browser_binding.secret_for(request, by_post=by_post)
    visit.binding = digest(secret)
    visit.save(force_insert=True)
    return Departure(url, secret, by_post)


def prepare_link(
    request: PlatformRequest, principal: Principal, provider: str, wish: Wish, *, now: datetime
) -> tuple[str, datetime]:
    """Begin a link for a session; give the URL that its browser has to open, and until when.

    Raises ProviderNotConfigured (404), RedirectNotAllowed (400), TooManyAttempts (429).
    """
    visit, url = _plan(provider, wish, now=now)
    refuse_flood(request, now)
    ticket = new_secret()
    visit.ticket = digest(ticket)
    visit.sealed = seal(unseal(visit.sealed) | {"url": url})
    visit.user_id, visit.session_id = principal.own_id, principal.session_id
    visit.save(force_insert=True)
    return f"{redirects.start(provider)}?ticket={ticket}", visit.expires_at


def depart_for_link(
    request: PlatformRequest, provider: str, ticket: str, *, now: datetime
) -> Departure:
    """Send the browser that opens a link's URL on its way; the ticket is good for one.

    Raises ProviderNotConfigured (404), CodeGone (410), TooManyAttempts (429).
    """
    registry.settings_of(provider)
    by_post = registry.returns_by_post(provider)
    refuse_flood(request, now)
    secret = browser_binding.secret_for(request, by_post=by_post)
    mine = ProviderVisit.objects.filter(
        ticket=digest(ticket), provider=provider, binding="", expires_at__gt=now
    )
    if not mine.update(binding=digest(secret)):
        raise CodeGone
    visit = ProviderVisit.objects.get(ticket=digest(ticket))
    return Departure(unseal(visit.sealed)["url"], secret, by_post)


def _plan(provider: str, wish: Wish, *, now: datetime) -> tuple[ProviderVisit, str]:
    """Give a visit that is not saved yet, and the provider's URL."""
    registry.settings_of(provider)
    redirect_to = redirects.check(wish.redirect_to)
    state = new_secret()
    kept: dict[str, Any] = {}
    url = registry.client(provider, kept=kept, state=state).begin()
    visit = ProviderVisit(
        provider=provider,
        state=digest(state),
        sealed=seal({"kept": kept}),
        redirect_to=redirect_to,
        client_state=wish.state,
        code_challenge=wish.code_challenge,
        environment=wish.environment,
        expires_at=now + LIFE,
    )
    return visit, url


def returned(request: PlatformRequest, provider: str, state: str) -> ProviderVisit:
    """Give the visit that a browser returns from; it may be over.

    Raises StateInvalid for an unknown state, and for one of another browser or provider.
    """
    secret = browser_binding.of(request, by_post=registry.returns_by_post(provider))
    found = ProviderVisit.objects.filter(state=digest(state), provider=provider)
    visit = found.select_related("user").first()
    if visit is None or not (visit.binding and is_same(visit.binding, digest(secret))):
        raise StateInvalid
    return visit


def claim(visit: ProviderVisit, *, now: datetime) -> dict[str, Any]:
    """Take a visit for this return, and give what was kept; of parallel returns one gets it.

    Raises StateUsed.
    """
    open_ = ProviderVisit.objects.filter(pk=visit.pk, used_at=None, expires_at__gt=now)
    if not open_.update(used_at=now, sealed=""):
        raise StateUsed
    kept: dict[str, Any] = unseal(visit.sealed)["kept"]
    return kept


def refuse_flood(request: PlatformRequest, now: datetime) -> None:
    """Count a departure, the plan of one, or a return against the caller's address.

    Raises TooManyAttempts.
    """
    wait_s = limits.take(
        "external sign-in",
        network_of(client_address(request)),
        limit=settings.LIMIT_OAUTH_STARTS_PER_ADDRESS,
        window=WINDOW,
        now=now,
    )
    if wait_s:
        raise TooManyAttempts(retry_after_s=wait_s)
