"""OAuth transactions: started for a sign-in or a link, bound to a browser, called back once.

``state`` is created by ``start_sign_in`` and ``prepare_link``, and checked by ``find``. The binding
prevents login CSRF: a callback is refused in a browser that did not start the transaction. It is a
random cookie, of which the row stores a digest; one cookie serves all transactions of a browser, so
that two tabs do not replace each other's.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from django.http import HttpRequest, HttpResponse

from accounts.errors import TooManyAttempts
from common import rate_limits
from common.one_time_secrets import decrypt_json, digest, encrypt_json, is_same, new_secret
from common.principals import PlatformRequest, Principal
from common.web import cookies
from common.web.addresses import client_address, subscriber_network
from oauth.errors import CodeGone, StateInvalid, StateUsed
from oauth.flow import redirects
from oauth.models import OAuthTransaction
from oauth.providers import configured

LIFETIME_S: Final = 600
# By form post or not. A form sent from another site brings only cookies with SameSite=None.
COOKIE_NAMES: Final[dict[bool, str]] = {
    False: "__Host-zonal-oauth",
    True: "__Host-zonal-oauth-post",
}
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
LIFETIME: Final = timedelta(seconds=LIFETIME_S)
# In the window.
STARTS_PER_ADDRESS: Final = 600
RATE_WINDOW: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a client asks for: where to return to, its ``state``, its PKCE challenge.

    redirect_to: '' for the console. environment: to sign in to, '' for the last used.
    """

    redirect_to: str
    state: str
    code_challenge: str
    environment: str = ""


@dataclass(frozen=True, slots=True)
class ProviderRedirect:
    """The provider's URL for the browser, and the browser's secret for its cookie."""

    url: str
    browser_secret: str
    form_post: bool


def start_sign_in(
    request: PlatformRequest, provider: str, wanted: AuthorizationRequest, *, now: datetime
) -> ProviderRedirect:
    """Start a sign-in in the requesting browser.

    Raises ProviderNotConfigured (404), RedirectNotAllowed (400), TooManyAttempts (429).
    """
    transaction, url = _new(provider, wanted, now=now)
    form_post = configured.uses_form_post(provider)
    check_rate_limit(request, now)
    secret = _browser_secret_or_new(request, form_post=form_post)
    transaction.browser_digest = digest(secret)
    transaction.save(force_insert=True)
    return ProviderRedirect(url, secret, form_post)


def prepare_link(
    request: PlatformRequest,
    principal: Principal,
    provider: str,
    wanted: AuthorizationRequest,
    *,
    now: datetime,
) -> tuple[str, datetime]:
    """Prepare a link for a session; return the URL its browser has to open, and its expiry.

    Raises ProviderNotConfigured (404), RedirectNotAllowed (400), TooManyAttempts (429).
    """
    transaction, url = _new(provider, wanted, now=now)
    check_rate_limit(request, now)
    ticket = new_secret()
    transaction.ticket_digest = digest(ticket)
    transaction.encrypted_session = encrypt_json(
        decrypt_json(transaction.encrypted_session) | {"url": url}
    )
    transaction.user_id, transaction.session_id = principal.own_id, principal.session_id
    transaction.save(force_insert=True)
    return f"{redirects.start(provider)}?ticket={ticket}", transaction.expires_at


def start_link(
    request: PlatformRequest, provider: str, ticket: str, *, now: datetime
) -> ProviderRedirect:
    """Bind a prepared link to the browser that opens its URL; the ticket works once.

    Raises ProviderNotConfigured (404), CodeGone (410), TooManyAttempts (429).
    """
    configured.settings_of(provider)
    form_post = configured.uses_form_post(provider)
    check_rate_limit(request, now)
    secret = _browser_secret_or_new(request, form_post=form_post)
    unbound = OAuthTransaction.objects.filter(
        ticket_digest=digest(ticket), provider=provider, browser_digest="", expires_at__gt=now
    )
    if not unbound.update(browser_digest=digest(secret)):
        raise CodeGone
    transaction = OAuthTransaction.objects.get(ticket_digest=digest(ticket))
    return ProviderRedirect(decrypt_json(transaction.encrypted_session)["url"], secret, form_post)


def find(request: PlatformRequest, provider: str, state: str) -> OAuthTransaction:
    """Return the transaction of a callback; it may be expired or used.

    Raises StateInvalid for an unknown state, and for one of another browser or provider.
    """
    secret = _browser_secret(request, form_post=configured.uses_form_post(provider))
    rows = OAuthTransaction.objects.filter(state_digest=digest(state), provider=provider)
    found = rows.select_related("user").first()
    if found is None or not (
        found.browser_digest and is_same(found.browser_digest, digest(secret))
    ):
        raise StateInvalid
    return found


def claim(transaction: OAuthTransaction, *, now: datetime) -> dict[str, Any]:
    """Use a transaction up and return social-core's session; of concurrent callbacks one succeeds.

    Raises StateUsed.
    """
    unused = OAuthTransaction.objects.filter(pk=transaction.pk, used_at=None, expires_at__gt=now)
    if not unused.update(used_at=now, encrypted_session=""):
        raise StateUsed
    session: dict[str, Any] = decrypt_json(transaction.encrypted_session)["session"]
    return session


def check_rate_limit(request: PlatformRequest, now: datetime) -> None:
    """Count a start, a prepared link, or a callback against the client's address.

    Raises TooManyAttempts.
    """
    rate_limits.enforce(
        "external sign-in",
        subscriber_network(client_address(request)),
        limit=STARTS_PER_ADDRESS,
        window=RATE_WINDOW,
        error=TooManyAttempts,
        now=now,
    )


def set_cookie(response: HttpResponse, secret: str, *, form_post: bool) -> None:
    """Store the secret in the browser for as long as a transaction lives."""
    same_site: Literal["Lax", "None"] = "None" if form_post else "Lax"
    response.set_cookie(
        COOKIE_NAMES[form_post],
        secret,
        max_age=LIFETIME_S,
        path="/",
        secure=True,
        httponly=True,
        samesite=same_site,
    )


def _new(
    provider: str, wanted: AuthorizationRequest, *, now: datetime
) -> tuple[OAuthTransaction, str]:
    """Return a transaction that is not saved yet, and the provider's authorization URL."""
    configured.settings_of(provider)
    redirect_to = redirects.check(wanted.redirect_to)
    state = new_secret()
    session: dict[str, Any] = {}
    url = configured.backend(provider, session=session, state=state).auth_url()
    transaction = OAuthTransaction(
        provider=provider,
        state_digest=digest(state),
        encrypted_session=encrypt_json({"session": session}),
        redirect_to=redirect_to,
        client_state=wanted.state,
        code_challenge=wanted.code_challenge,
        environment=wanted.environment,
        expires_at=now + LIFETIME,
    )
    return transaction, url


def _browser_secret_or_new(request: HttpRequest, *, form_post: bool) -> str:
    """Return the browser's secret, or a new one."""
    return _browser_secret(request, form_post=form_post) or new_secret()


def _browser_secret(request: HttpRequest, *, form_post: bool) -> str:
    """Return the browser's secret, '' if it has none.

    form_post: the callback is a form sent from the provider's page.
    """
    value = cookies.sent(request, COOKIE_NAMES[form_post])
    return value if _SECRET.fullmatch(value) else ""
