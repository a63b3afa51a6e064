"""The URLs of the flow: our start and callback, and where a browser may be sent back to."""

from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.conf import settings

from common.errors import PlatformError
from oauth.errors import RedirectNotAllowed

# The console's pages that complete sign-ins and links.
CONSOLE: Final = ("/console/sign-in", "/console/linked-accounts")


def console() -> tuple[str, ...]:
    """Return the URLs of the console's pages, the one for sign-ins first."""
    return tuple(f"{settings.OAUTH.redirect_base_url}{path}" for path in CONSOLE)


def start(provider: str) -> str:
    """Return the URL that a browser opens first; its cookie and the callback share the host."""
    return f"{settings.OAUTH.redirect_base_url}/v1/auth/oauth/{provider}/start"


def callback(provider: str) -> str:
    """Return the URL that the provider sends browsers back to."""
    return f"{settings.OAUTH.redirect_base_url}/v1/auth/oauth/{provider}/callback"


def check(redirect_to: str) -> str:
    """Return an allowed ``redirect_to``; '' means the console.

    RFC 9700 §2.1: exact string comparison, since looser comparisons have been bypassed.
    Raises RedirectNotAllowed.
    """
    console_urls = console()
    if redirect_to not in {"", *console_urls, *settings.OAUTH.redirects}:
        raise RedirectNotAllowed
    return redirect_to or console_urls[0]


def with_code(redirect_to: str, code: str, client_state: str) -> str:
    """Return the URL with the one-time code."""
    return _with(redirect_to, {"code": code, "state": client_state})


def with_error(redirect_to: str, error: PlatformError, client_state: str) -> str:
    """Return the URL with an error: its stable code, and its title for people."""
    values = {"error": error.code, "error_description": error.title, "state": client_state}
    return _with(redirect_to, values)


def _with(url: str, values: dict[str, str]) -> str:
    parts = urlsplit(url)
    added = urlencode({name: value for name, value in values.items() if value})
    query = f"{parts.query}&{added}" if parts.query else added
    return urlunsplit(parts._replace(query=query))
