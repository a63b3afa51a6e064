"""The console's cookies: one for each kind of token, out of reach of any script.

``__Host-`` (RFC 6265bis §4.1.3): set by this very host over a secure transport, for no other one,
so that neither a subdomain nor a network can plant one. Browsers hold localhost to be secure.
"""

from collections.abc import Iterable
from typing import Final

from django.http import HttpRequest, HttpResponse

from platform_site.lib import cookies as lib_cookies

# By the member of an answer that carries the token.
NAMES: Final = {
    "access_token": "__Host-zonal-access",
    "refresh_token": "__Host-zonal-refresh",
    "mfa_token": "__Host-zonal-mfa",
    "device_token": "__Host-zonal-device",
    "reset_token": "__Host-zonal-reset",
}


def read(request: HttpRequest, field: str) -> str:
    """Give the token a cookie holds; '' without one, and where two of them contradict."""
    return lib_cookies.sent(request, NAMES[field])


def put(response: HttpResponse, field: str, token: str, *, life_s: int) -> None:
    """Hand a token to the browser."""
    response.set_cookie(
        NAMES[field],
        token,
        max_age=max(0, life_s),
        path="/",
        secure=True,
        httponly=True,
        samesite="Strict",
    )


def clear(response: HttpResponse, fields: Iterable[str]) -> None:
    """Take tokens away from the browser."""
    for field in fields:
        put(response, field, "", life_s=0)
