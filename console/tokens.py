"""Tokens in cookies: moved to where the public API, which uses no cookies, expects them, and back.

There is one cookie for each kind of token, not readable by scripts. ``__Host-`` (RFC 6265bis
§4.1.3): set by this host over a secure transport and for this host only, so that neither a
subdomain nor the network can plant one. Browsers treat localhost as secure.
"""

import json
import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from accounts.errors import TokenSuperseded
from common.api.bodies import BODY_LIMIT_BYTES
from common.web import cookies
from twofactor.trusted_devices import devices

# The cookie's name by the response field of its token.
COOKIE_NAMES: Final = {
    "access_token": "__Host-zonal-access",
    "refresh_token": "__Host-zonal-refresh",
    "mfa_token": "__Host-zonal-mfa",
    "device_token": "__Host-zonal-device",
    "reset_token": "__Host-zonal-reset",
}
LOGIN: Final = "/v1/auth/login"
# The paths where a trusted device replaces the second factor.
ACCEPTS_DEVICES: Final = (LOGIN, "/v1/auth/oauth/token")
REFRESH: Final = "/v1/auth/refresh"
LOGOUT: Final = "/v1/auth/logout"
RECOVERED: Final = "/v1/auth/recovery/complete"
# The field of a request's body that is filled from a cookie.
FILLED: Final = {
    REFRESH: "refresh_token",
    LOGOUT: "refresh_token",
    "/v1/auth/switch": "refresh_token",
    "/v1/auth/recovery/challenge": "reset_token",
    "/v1/auth/recovery/prove": "reset_token",
    RECOVERED: "reset_token",
}
SESSION: Final = ("access_token", "refresh_token")
# Without the trusted device, which is kept after a sign-out.
SIGN_IN: Final = (*SESSION, "mfa_token", "reset_token")
# The cookies that setting one deletes: a browser has one identity, signed in or pending.
SUPERSEDED: Final = {
    "access_token": ("mfa_token", "reset_token"),
    "mfa_token": SESSION,
}
# The response field with a token's expiry. The access cookie is kept as long as the refresh cookie,
# so that an expired token gets `token_expired` and is refreshed.
ENDS_WITH: Final = {
    "access_token": "refresh_expires_at",
    "refresh_token": "refresh_expires_at",
    "mfa_token": "mfa_expires_at",
    "reset_token": "expires_at",
}
DEFAULT_LIFE_S: Final = 600


def bring_in(request: HttpRequest) -> None:
    """Copy the tokens from the cookies to where a client of the API would send them."""
    bearer = read_cookie(request, "access_token") or read_cookie(request, "mfa_token")
    if bearer:
        _set_header(request, "Authorization", f"Bearer {bearer}")
    if request.path in ACCEPTS_DEVICES and (device := read_cookie(request, "device_token")):
        _set_header(request, devices.HEADER, device)
    if request.path in FILLED:
        _fill_body(request, FILLED[request.path])


def _set_header(request: HttpRequest, name: str, value: str) -> None:
    request.META[f"HTTP_{name.upper().replace('-', '_')}"] = value
    # Django caches the headers, and they may have been read already.
    request.__dict__.pop("headers", None)


def _fill_body(request: HttpRequest, field: str) -> None:
    """Add a token to a JSON body that lacks it; the view refuses a body that is not JSON."""
    token = read_cookie(request, field)
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    if not token or not length.isdecimal() or int(length) > BODY_LIMIT_BYTES:
        return
    try:
        body: Any = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        return
    if not isinstance(body, dict) or field in body:
        return
    filled = json.dumps(body | {field: token}).encode()
    request._body = filled  # noqa: SLF001 - there is no other way to change a body
    request.META["CONTENT_LENGTH"] = str(len(filled))


def take_out(request: HttpRequest, response: HttpResponse) -> None:
    """Move the tokens of a response into cookies, and delete the cookies of used-up tokens."""
    for field, token in _strip(response).items():
        value, life_s = token
        put_cookie(response, field, value, life_s=life_s)
        clear_cookies(response, SUPERSEDED.get(field, ()))
    clear_cookies(response, _spent(request.path, response))


def _spent(path: str, response: HttpResponse) -> tuple[str, ...]:
    """Return the tokens that a response invalidates."""
    status = response.status_code
    if path == LOGOUT and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        # Even if the token was refused, because signing out must always delete the cookies.
        return SIGN_IN
    if path == REFRESH and status == HTTPStatus.UNAUTHORIZED:
        # By a switch in another tab the browser has new cookies, which must stay.
        is_superseded = json.loads(response.content).get("code") == TokenSuperseded.code
        return () if is_superseded else SESSION
    if path == RECOVERED and status in {HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.GONE}:
        return ("reset_token",)
    return ()


def _strip(response: HttpResponse) -> dict[str, tuple[str, int]]:
    """Remove the tokens from a JSON response; return each with its lifetime in seconds."""
    if response.streaming or "json" not in response.get("Content-Type", ""):
        return {}
    body: Any = json.loads(response.content or b"null")
    if not isinstance(body, dict):
        return {}
    taken = {
        field: (str(body[field]), _life_s(field, body)) for field in COOKIE_NAMES if field in body
    }
    if taken:
        left = {name: value for name, value in body.items() if name not in taken}
        response.content = json.dumps(left)
        response.headers.pop("Content-Length", None)
    return taken


def _life_s(field: str, body: dict[str, Any]) -> int:
    if field == "device_token":
        return int(devices.LIFE.total_seconds())
    ends = body.get(ENDS_WITH[field])
    return ends - int(time.time()) if isinstance(ends, int) else DEFAULT_LIFE_S


def read_cookie(request: HttpRequest, field: str) -> str:
    """Return the token in a cookie; '' without one, or if two cookies of the name differ."""
    return cookies.sent(request, COOKIE_NAMES[field])


def put_cookie(response: HttpResponse, field: str, token: str, *, life_s: int) -> None:
    """Set the cookie of a token."""
    response.set_cookie(
        COOKIE_NAMES[field],
        token,
        max_age=max(0, life_s),
        path="/",
        secure=True,
        httponly=True,
        samesite="Strict",
    )


def clear_cookies(response: HttpResponse, fields: Iterable[str]) -> None:
    """Delete the cookies of tokens."""
    for field in fields:
        put_cookie(response, field, "", life_s=0)
