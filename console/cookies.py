"""The console's cookies: one for each kind of token, not readable by scripts.

``__Host-`` (RFC 6265bis §4.1.3): set by this host over a secure transport and for this host only,
so that neither a subdomain nor the network can plant one. Browsers treat localhost as secure.
"""

from collections.abc import Iterable
from typing import Final

from django.http import HttpRequest, HttpResponse

from common.web import cookies as lib_cookies

# The cookie's name by the response field of its token.
NAMES: Final = {
    "access_token": "__Host-zonal-access",
    "refresh_token": "__Host-zonal-refresh",
    "mfa_token": "__Host-zonal-mfa",
    "device_token": "__Host-zonal-device",
    "reset_token": "__Host-zonal-reset",
}


def read(request: HttpRequest, field: str) -> str:
    """Return the token in a cookie; '' without one, or if two cookies of the name differ."""
    return lib_cookies.sent(request, NAMES[field])


def put(response: HttpResponse, field: str, token: str, *, life_s: int) -> None:
    """Set the cookie of a token."""
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
    """Delete the cookies of tokens."""
    for field in fields:
        put(response, field, "", life_s=0)
