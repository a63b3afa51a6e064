"""Sign-in to the admin with a passkey: possession and user verification prove both factors."""

from collections.abc import Callable
from typing import Any, cast

import orjson
from django.contrib.admin import site
from django.contrib.auth import REDIRECT_FIELD_NAME, login
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.audit_tags import AccountTag
from accounts.models import User
from audit import trail
from common import problems
from common.errors import InvalidRequest, NotAuthenticated, PlatformError
from common.principals import PlatformRequest
from common.scoping import unscoped
from platform_site.staff.login import BACKEND, note_proven, note_proven_again
from twofactor.errors import PasskeyRejected
from twofactor.factors import holdings
from twofactor.webauthn import sign_in
from twofactor.webauthn.factor import FACTOR


def urls() -> list[URLPattern]:
    """Return the paths; CSRF protection applies, as for the login form."""
    return [
        path(f"login/passkey/{view.__name__}/", _page(view), name=f"passkey_{view.__name__}")
        for view in (start, finish, confirm)
    ]


def _page(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    return never_cache(require_POST(unscoped("staff belong to the platform")(view)))


def start(request: HttpRequest) -> HttpResponse:
    """Return the options for the browser; the same for everyone."""
    try:
        options = sign_in.start(
            cast(PlatformRequest, request), email="", rp_id="", now=timezone.now()
        )
    except PlatformError as exc:
        return problems.respond(request, exc)
    return JsonResponse(options)


def finish(request: HttpRequest) -> HttpResponse:
    """Open a session of the admin for the owner of a passkey, who must be staff."""
    try:
        path_after = _enter(request, _body(request))
    except PlatformError as exc:
        return problems.respond(request, exc)
    return JsonResponse({"next": path_after})


def confirm(request: HttpRequest) -> HttpResponse:
    """Record that a member of staff has proven their own passkey again, for an action."""
    try:
        _prove_again(request, _body(request))
    except PlatformError as exc:
        return problems.respond(request, exc)
    return JsonResponse({})


def _prove_again(request: HttpRequest, body: dict[str, Any]) -> None:
    """Prove the passkey of the user of this admin session.

    Raises NotAuthenticated without a session, PasskeyRejected for a wrong passkey and for another
    user's.
    """
    if not site.has_permission(request):
        raise NotAuthenticated
    user = _proven_staff(request, body)
    if user.pk != request.user.pk:
        raise PasskeyRejected
    note_proven_again(request, user, method=FACTOR.name)


def _enter(request: HttpRequest, body: dict[str, Any]) -> str:
    """Sign in; return the path to go to. Raises PasskeyRejected."""
    user = _proven_staff(request, body)
    login(request, user, backend=BACKEND)
    note_proven(request, user)
    trail.record_staff(
        request,
        AccountTag.ADMIN_SESSION_CREATE,
        organization_id=user.organization_id,
        method=FACTOR.name,
    )
    return _path_after(request, str(body.get(REDIRECT_FIELD_NAME, "")))


def _proven_staff(request: HttpRequest, body: dict[str, Any]) -> User:
    """Return the owner of a proven passkey.

    Raises PasskeyRejected for a wrong passkey, for users who are not staff, and if the policy does
    not allow passkeys.
    """
    user = sign_in.proven_user(
        cast(PlatformRequest, request),
        challenge_id=str(body.get("challenge_id", "")),
        credential=body["credential"],
        now=timezone.now(),
    )
    if not user.is_staff or FACTOR.name not in holdings.holdings_of(user.pk).askable:
        raise PasskeyRejected
    return user


def _body(request: HttpRequest) -> dict[str, Any]:
    try:
        # Unlike json, orjson refuses lone surrogates, which cannot be encoded.
        body = orjson.loads(request.body)
    except (orjson.JSONDecodeError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("credential"), dict):
        raise InvalidRequest("The body must be an object with a credential.")
    return body


def _path_after(request: HttpRequest, wanted: str) -> str:
    is_own = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_own else reverse("admin:index")
