"""The callback of a provider: state checked, code exchanged, profile read, browser sent on.

A form post callback (OAuth 2.0 Form Post Response Mode) is read strictly.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl

import structlog
from django.db import transaction
from rest_framework.parsers import BaseParser

from accounts.audit_tags import AccountTag
from accounts.signin.signin import SignInMethod
from audit import trail
from common.errors import InvalidRequest, PayloadTooLarge, PlatformError
from common.principals import PlatformRequest
from oauth import account_matching
from oauth.audit_tags import OAuthTag
from oauth.errors import ProviderError
from oauth.flow import flow_state, grants, redirects
from oauth.models import OAuthTransaction
from oauth.providers import configured, http
from oauth.providers.backend import log_context
from oauth.providers.profile import Profile

log = structlog.get_logger(__name__)

MAX_BYTES: Final = 32 * 1024
MAX_FIELDS: Final = 20


def handle(
    request: PlatformRequest, provider: str, parameters: Mapping[str, str], *, now: datetime
) -> str:
    """Return the URL to send the browser on to: with a one-time code, or with an error.

    Only the code is created here; accounts and links are created when it is exchanged.
    Raises the errors that leave no trusted URL to send the browser to: ProviderNotConfigured
    (404), StateInvalid (400), TooManyAttempts (429).
    """
    configured.settings_of(provider)
    flow_state.check_rate_limit(request, now)
    try:
        found = flow_state.find(request, provider, parameters.get("state", ""))
    except PlatformError as exc:
        _record_refusal(request, provider, exc)
        raise
    try:
        session = flow_state.claim(found, now=now)
        profile = _fetch_profile(provider, session, parameters)
        if found.user_id is None:
            account_matching.require_verified_email(profile)
    except PlatformError as exc:
        _record_refusal(request, provider, exc, found)
        return redirects.with_error(found.redirect_to, exc, found.client_state)
    code = grants.issue_code(found, profile, now=now)
    return redirects.with_code(found.redirect_to, code, found.client_state)


def _fetch_profile(
    provider: str, session: dict[str, object], parameters: Mapping[str, str]
) -> Profile:
    """Return the user's profile; this calls the provider, so no transaction may be open."""
    backend = configured.backend(provider, session=session, callback=parameters)
    try:
        # A provider with many mapped groups is called many times while the user waits.
        with http.time_limit(3 * http.TIMEOUT_S):
            profile = backend.fetch_profile()
    except PlatformError as exc:
        log.warning(
            "external_sign_in_failed", provider=provider, error=exc.code, **log_context(exc)
        )
        raise
    if not profile.has_subject():
        raise ProviderError
    return profile


def _record_refusal(
    request: PlatformRequest,
    provider: str,
    error: PlatformError,
    found: OAuthTransaction | None = None,
) -> None:
    user = found.user if found is not None else None
    with transaction.atomic():
        trail.add(
            request,
            OAuthTag.IDENTITY_CREATE if user is not None else AccountTag.SESSION_CREATE,
            outcome="refused",
            organization_id=user.organization_id if user is not None else None,
            actor_id=user.pk if user is not None else None,
            actor=str(user) if user is not None else "",
            data={"method": str(SignInMethod.EXTERNAL), "provider": provider, "error": error.code},
        )


class FormPostParser(BaseParser):
    """Read ``application/x-www-form-urlencoded`` within bounds, each field once."""

    media_type = "application/x-www-form-urlencoded"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """Return the fields. Raises PayloadTooLarge (413), InvalidRequest (400)."""
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise PayloadTooLarge(f"The limit here is {MAX_BYTES} bytes.")
        try:
            pairs = parse_qsl(body.decode("ascii"), max_num_fields=MAX_FIELDS, errors="strict")
        except ValueError as exc:
            raise InvalidRequest("The form cannot be read.") from exc
        return without_repeats(pairs)


def without_repeats(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs as a mapping.

    Raises InvalidRequest (400) for a repeated name: RFC 6749 §3.1 forbids it, and two readers could
    differ on which value counts.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InvalidRequest("A parameter is given twice.")
    return values
