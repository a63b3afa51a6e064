"""social-core's backends as the OAuth client of one transaction.

A backend builds the authorization URL, exchanges the provider's code and, for OpenID Connect,
verifies the ID token: signature by the provider's JWKS (fetched again for an unknown key id),
issuer, audience, azp, expiry, age, nonce of this transaction, at_hash. social-core's pipeline never
runs: ``do_auth`` returns the token response instead of signing anyone in. Limits of outbound calls,
the browser binding and the trust in an e-mail address are decided here and not by social-core.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, NoReturn

import requests
import structlog
from django.http import HttpResponse
from social_core.backends.oauth import BaseOAuth2
from social_core.backends.open_id_connect import OpenIdConnectAssociation, OpenIdConnectAuth
from social_core.exceptions import (
    AuthCanceled,
    AuthCredentialError,
    AuthProviderError,
    ErrorStage,
    SocialAuthBaseException,
)
from social_core.utils import http_error

from common.errors import PlatformError
from common.machine.reasons import reason
from common.one_time_secrets import new_secret
from oauth.errors import AccessDenied, IdentityInvalid, ProviderError, ProviderUnavailable
from oauth.providers import http
from oauth.providers.conf import ProviderSettings
from oauth.providers.profile import Memberships, Profile, ProviderTokens
from oauth.providers.social_core import TransactionStrategy

log = structlog.get_logger(__name__)


class CredentialsRefused(Exception):
    """The provider does not accept a user's tokens: withdrawn, expired, or never issued to us."""


class ProviderBackend(BaseOAuth2[HttpResponse], ABC):
    """The base of all providers; each provider has a module in this folder.

    uses_form_post: the callback is a form sent from the provider's page (OAuth 2.0 Form Post
    Response Mode).
    """

    uses_form_post: ClassVar[bool] = False

    def __init__(
        self, provider: ProviderSettings, strategy: TransactionStrategy, callback_url: str
    ) -> None:
        super().__init__(strategy, redirect_uri=callback_url)
        self.provider = provider
        self.transaction = strategy

    @classmethod
    @abstractmethod
    def social_settings(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Return social-core's settings for a provider, by their bare names."""

    @abstractmethod
    def read_profile(self, tokens: dict[str, Any]) -> Profile:
        """Return the profile of the token response's user.

        Raises a ``PlatformError`` to show to the user, and social-core's exceptions.
        """

    def issuers(self) -> tuple[str, ...]:
        """Return the accepted values of ``iss``; () if the provider has none."""
        return ()

    def memberships(
        self, credentials: ProviderTokens, subject: str, groups: Iterable[str]
    ) -> Memberships:
        """Ask the provider which groups a user is in; an unclear response counts as unknown.

        Raises CredentialsRefused.
        """
        return Memberships()

    def refresh_credentials(self, credentials: ProviderTokens) -> ProviderTokens:
        """Exchange a refresh token for new tokens; the old ones may be invalid afterwards.

        Raises CredentialsRefused, or ProviderUnavailable and ProviderError if the reason is not the
        user.
        """
        try:
            tokens = self.refresh_token(credentials.refresh_token)
        except AuthCredentialError as exc:
            raise CredentialsRefused from exc
        except SocialAuthBaseException as exc:
            raise platform_error(exc) from exc
        return self.credentials(tokens, before=credentials)

    def credentials(
        self, tokens: Mapping[str, Any], before: ProviderTokens | None = None
    ) -> ProviderTokens:
        """Read a token response; the earlier refresh token stays if there is no new one."""
        expires_in_s = tokens.get("expires_in")
        refresh_token = tokens.get("refresh_token")
        return ProviderTokens(
            access_token=str(tokens["access_token"]),
            refresh_token=refresh_token
            if isinstance(refresh_token, str)
            else (before.refresh_token if before is not None else ""),
            expires_at=int(time.time()) + expires_in_s
            if isinstance(expires_in_s, int) and expires_in_s > 0
            else 0,
        )

    def groups(self) -> list[str]:
        """Return every group that a mapping names, once."""
        return list(dict.fromkeys(row.group for row in self.provider.mappings))

    def fetch_profile(self) -> Profile:
        """Exchange the code of a callback and return the profile of the user who signed in.

        Raises AccessDenied, ProviderError, ProviderUnavailable, IdentityInvalid.
        """
        issuer = self.transaction.callback.get("iss")
        if issuer is not None and self.issuers() and issuer not in self.issuers():
            # RFC 9207: the response comes from another provider.
            raise IdentityInvalid
        try:
            tokens: Any = self.auth_complete()
            return self.read_profile(tokens)
        except SocialAuthBaseException as exc:
            raise platform_error(exc) from exc
        except CredentialsRefused as exc:
            # The provider refused tokens that it has just issued.
            raise ProviderError from exc

    def state_token(self) -> str:
        """Return the state that the transaction was created with."""
        return self.transaction.state

    def do_auth(self, access_token: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the token response instead of running social-core's pipeline."""
        return kwargs["response"]

    def request(
        self,
        url: str,
        *,
        method: Literal["GET", "POST", "DELETE"] = "GET",
        headers: Mapping[str, str | bytes] | None = None,
        data: dict[Any, Any] | None = None,
        json: dict[Any, Any] | None = None,
        auth: Any = None,
        params: dict[Any, Any] | None = None,
        timeout: float | None = None,
        stage: ErrorStage = "user_info",
    ) -> requests.Response:
        """Call the provider within limits; social-core's own call follows redirects.

        Raises AuthProviderError, and other exceptions of social-core.
        """
        try:
            response = http.send(method, url, headers=headers, data=data, params=params, auth=auth)
            response.raise_for_status()
        except requests.HTTPError as exc:
            raise http_error(self, exc, stage=stage) from None
        except requests.Timeout as exc:
            self._fail("timeout", stage, exc)
        except (requests.ConnectionError, http.ResponseTooLong) as exc:
            self._fail("connection_failed", stage, exc)
        except requests.RequestException as exc:
            self._fail("http_error", stage, exc)
        if response.is_redirect:
            self._fail("http_error", stage)
        return response

    def _fail(self, code: str, stage: ErrorStage, exc: Exception | None = None) -> NoReturn:
        if exc is not None:
            said = reason(exc)
            log.warning("provider_unreachable", provider=self.name, stage=stage, reason=said)
        # From None: the text of requests' exceptions contains URLs, and with them secrets.
        raise AuthProviderError(self, code=code, stage=stage) from None

    def bearer(self, access_token: str) -> dict[str, str | bytes]:
        """Return the headers of a call on behalf of the user."""
        return {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}


class TransactionNonce(OpenIdConnectAssociation):
    """The nonce of a transaction; it has no row of its own."""

    id = None

    def is_expired(self) -> bool:
        """Return False: the transaction itself expires."""
        return False


class OpenIdBackend(ProviderBackend, OpenIdConnectAuth[HttpResponse]):
    """A provider that speaks OpenID Connect: the transaction's session holds the nonce."""

    @abstractmethod
    def issuers(self) -> tuple[str, ...]:
        """Return the accepted values of ``iss``."""

    def id_token_issuer(self) -> Any:
        """Return the accepted values of ``iss`` to social-core."""
        return self.issuers()

    def get_and_store_nonce(self, url: Any, state: Any) -> str:
        """Return a new nonce, which social-core puts into the session beside the state."""
        return new_secret()

    def get_nonce(self, nonce: Any) -> TransactionNonce:
        """Return the nonce's record; social-core has compared its value with the session's."""
        return TransactionNonce(nonce, assoc_type=self.transaction.callback.get("state"))

    def remove_nonce(self, nonce_id: Any) -> None:
        """Do nothing: the transaction is used once, and its nonce with it."""


def platform_error(error: SocialAuthBaseException) -> PlatformError:
    """Return the PlatformError for social-core's exception; it contains no text of the provider."""
    if isinstance(error, AuthCanceled):
        return AccessDenied()
    if error.code in {"timeout", "connection_failed", "tls_error", "unavailable", "rate_limited"}:
        return ProviderUnavailable()
    if error.stage == "token_validation":
        return IdentityInvalid()
    return ProviderError()


def log_context(error: PlatformError) -> dict[str, Any]:
    """Return fields for the log: codes and statuses, no text of the provider."""
    cause = error.__cause__
    if not isinstance(cause, SocialAuthBaseException):
        return {}
    return {"reason": cause.code, "stage": cause.stage, "status": cause.status_code}
