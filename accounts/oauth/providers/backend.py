"""social-core as the OAuth client of one visit, and of nothing else.

It builds the authorization URL, exchanges the code and, for OpenID Connect, verifies the ID token:
signature by the provider's JWKS (fetched again for an unknown key id), issuer, audience, azp,
expiry, age, nonce of this visit, at_hash. Its sessions are one visit's row, its storage keeps
nothing (the row is used once), and its pipeline never runs: ``do_auth`` hands the answer out.
Ours to do: the bounds of outbound calls, whose browser it is, and what an e-mail is worth.
The Django package beside it would add models, sessions and views, none of them of use here.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, NoReturn

import requests
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

from accounts.oauth.errors import (
    AccessDenied,
    IdentityInvalid,
    ProviderError,
    ProviderUnavailable,
)
from accounts.oauth.providers import http
from accounts.oauth.providers.profile import Credentials, Memberships, Profile
from accounts.oauth.providers.strategy import VisitStrategy
from accounts.oauth.secrets import new_secret
from platform_site.lib.errors import PlatformError
from platform_site.lib.provider_settings import ProviderSettings


class CredentialsRefused(Exception):
    """The provider no longer takes somebody's tokens: withdrawn, expired, or never ours."""


class Client(BaseOAuth2[str], ABC):
    """One provider as we speak to it; the modules of ``providers`` each add what is its own.

    returns_by_post: the browser comes back with a form sent from the provider's own page.
    """

    returns_by_post: ClassVar[bool] = False

    def __init__(self, provider: ProviderSettings, strategy: VisitStrategy, callback: str) -> None:
        super().__init__(strategy, redirect_uri=callback)
        self.provider = provider
        self.visit = strategy

    @classmethod
    @abstractmethod
    def options(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Give social-core's settings for a provider, by their bare names."""

    @abstractmethod
    def profile(self, answer: dict[str, Any]) -> Profile:
        """Say who it is, by the token endpoint's answer.

        Raises what ``PlatformError`` a person should be told, and social-core's exceptions.
        """

    def issuers(self) -> tuple[str, ...]:
        """Give the names the provider calls itself by; () where it has none."""
        return ()

    def memberships(
        self, credentials: Credentials, subject: str, groups: Iterable[str]
    ) -> Memberships:
        """Ask which of the groups somebody is in; what the provider does not say is unknown.

        Raises CredentialsRefused.
        """
        return Memberships()

    def renew(self, credentials: Credentials) -> Credentials:
        """Exchange a refresh token for new tokens; the old ones may be void from then on.

        Raises CredentialsRefused, and ProviderUnavailable or ProviderError, which say nothing of
        the person.
        """
        try:
            answer = self.refresh_token(credentials.refresh_token)
        except AuthCredentialError as exc:
            raise CredentialsRefused from exc
        except SocialAuthBaseException as exc:
            raise refusal(exc) from exc
        return self.credentials(answer, before=credentials)

    def credentials(
        self, answer: Mapping[str, Any], before: Credentials | None = None
    ) -> Credentials:
        """Read the tokens of a token endpoint's answer; one without a refresh token keeps it."""
        life = answer.get("expires_in")
        refresh_token = answer.get("refresh_token")
        return Credentials(
            access_token=str(answer["access_token"]),
            refresh_token=refresh_token
            if isinstance(refresh_token, str)
            else (before.refresh_token if before is not None else ""),
            expires_at=int(time.time()) + life if isinstance(life, int) and life > 0 else 0,
        )

    def groups(self) -> list[str]:
        """Give every group that a mapping names, once."""
        return list(dict.fromkeys(row.group for row in self.provider.mappings))

    def begin(self) -> str:
        """Give the URL to send the browser to."""
        return self.auth_url()

    def finish(self) -> Profile:
        """Exchange the code of a return and say who came.

        Raises AccessDenied, ProviderError, ProviderUnavailable, IdentityInvalid.
        """
        issuer = self.visit.returned.get("iss")
        if issuer is not None and self.issuers() and issuer not in self.issuers():
            # RFC 9207: the answer of another provider than the one that was asked.
            raise IdentityInvalid
        try:
            answer: Any = self.auth_complete()
            return self.profile(answer)
        except SocialAuthBaseException as exc:
            raise refusal(exc) from exc
        except CredentialsRefused as exc:
            # Of tokens that it has just given out.
            raise ProviderError from exc

    def state_token(self) -> str:
        """Give the state that the visit was made with."""
        return self.visit.state

    def do_auth(self, access_token: Any, *args: Any, **kwargs: Any) -> Any:
        """Hand out the token endpoint's answer, where social-core would sign somebody in."""
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
        """Call the provider within our bounds; social-core's own call follows redirects.

        Raises AuthProviderError and what else the provider's error says.
        """
        try:
            answer = http.send(method, url, headers=headers, data=data, params=params, auth=auth)
            answer.raise_for_status()
        except requests.HTTPError as exc:
            raise http_error(self, exc, stage=stage) from None
        except requests.Timeout:
            self._fail("timeout", stage)
        except (requests.ConnectionError, http.AnswerTooLong):
            self._fail("connection_failed", stage)
        except requests.RequestException:
            self._fail("http_error", stage)
        if answer.is_redirect:
            self._fail("http_error", stage)
        return answer

    def _fail(self, code: str, stage: ErrorStage) -> NoReturn:
        # From None: the text of requests' own exceptions holds URLs, and with them secrets.
        raise AuthProviderError(self, code=code, stage=stage) from None

    def bearer(self, access_token: str) -> dict[str, str | bytes]:
        """Give the headers of a call for the person."""
        return {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}


class VisitNonce(OpenIdConnectAssociation):
    """A nonce, which no table has a row of."""

    id = None

    def is_expired(self) -> bool:
        """Leave that to the visit."""
        return False


class OpenIdClient(Client, OpenIdConnectAuth[str]):
    """A provider that speaks OpenID Connect: the nonce is the visit's, as the state is."""

    @abstractmethod
    def issuers(self) -> tuple[str, ...]:
        """Give what ``iss`` has to be one of."""

    def id_token_issuer(self) -> Any:
        """Tell social-core the same."""
        return self.issuers()

    def get_and_store_nonce(self, url: Any, state: Any) -> str:
        """Give a nonce, which social-core has the visit keep beside its state."""
        return new_secret()

    def get_nonce(self, nonce: Any) -> VisitNonce:
        """Give the nonce's record; its value was just compared with the one the visit kept."""
        return VisitNonce(nonce, assoc_type=self.visit.returned.get("state"))

    def remove_nonce(self, nonce_id: Any) -> None:
        """Do nothing: the visit is used once, and its nonce with it."""


def refusal(error: SocialAuthBaseException) -> PlatformError:
    """Give the error of ours that one of social-core's means; nothing of the provider's is told."""
    if isinstance(error, AuthCanceled):
        return AccessDenied()
    if error.code in {"timeout", "connection_failed", "tls_error", "unavailable", "rate_limited"}:
        return ProviderUnavailable()
    if error.stage == "token_validation":
        return IdentityInvalid()
    return ProviderError()


def why(error: PlatformError) -> dict[str, Any]:
    """Give what an operator needs in the log: codes and statuses, no text of the provider's."""
    cause = error.__cause__
    if not isinstance(cause, SocialAuthBaseException):
        return {}
    return {"reason": cause.code, "stage": cause.stage, "status": cause.status_code}
