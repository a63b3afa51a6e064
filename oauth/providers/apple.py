"""Sign in with Apple: OpenID Connect with a signed client secret and a form post callback.

Source: https://developer.apple.com/documentation/signinwithapplerestapi
"""

import json
from typing import Any, Final

from django.http import HttpResponse
from social_core.backends.apple import AppleIdAuth

from oauth.errors import AccessDenied
from oauth.providers.backend import OpenIdBackend
from oauth.providers.conf import ProviderSettings
from oauth.providers.profile import Profile, email_or_blank, one_line

ISSUER: Final = "https://appleid.apple.com"
RELAY: Final = "@privaterelay.appleid.com"
CANCELLED: Final = frozenset({"user_cancelled_authorize", "user_cancelled_login"})


class Apple(OpenIdBackend, AppleIdAuth[HttpResponse]):
    """Apple. It does not support PKCE; the nonce binds its response to the transaction."""

    name = "apple"
    uses_form_post = True
    DEFAULT_SCOPE = ["name", "email"]
    SCOPE_SEPARATOR = " "
    # Apple accepts up to six months; a new secret is made for each exchange, so minutes are enough.
    TOKEN_TTL_SEC = 300

    @classmethod
    def social_settings(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Return the endpoints, and the parts of the client secret."""
        base = provider.base_url or ISSUER
        return {
            "CLIENT": provider.client_id,
            "TEAM": provider.team_id,
            "KEY": provider.key_id,
            "SECRET": provider.private_key,
            "AUTHORIZATION_URL": f"{base}/auth/authorize",
            "ACCESS_TOKEN_URL": f"{base}/auth/token",
            "JWKS_URI": f"{base}/auth/keys",
            "TOKEN_ENDPOINT_AUTH_METHOD": "client_secret_post",
        }

    def issuers(self) -> tuple[str, ...]:
        """Return the issuer."""
        return (self.provider.base_url or ISSUER,)

    def generate_client_secret(self) -> str:
        """Return the configured client secret, or one signed with the key."""
        if self.provider.client_secret and not self.provider.private_key:
            return self.provider.client_secret
        return str(super().generate_client_secret())  # type: ignore[no-untyped-call]  # untyped there

    def fetch_profile(self) -> Profile:
        """Exchange the code; Apple has error codes of its own for a cancelled sign-in."""
        if self.transaction.callback.get("error") in CANCELLED:
            raise AccessDenied
        return super().fetch_profile()

    def read_profile(self, tokens: dict[str, Any]) -> Profile:
        """Read the ID token. The form is unsigned: only the name is taken from it."""
        claims = self.id_token or {}
        email = email_or_blank(claims.get("email"))
        return Profile(
            provider=self.name,
            subject=str(claims["sub"]),
            email=email,
            is_verified=_is_true(claims.get("email_verified")),
            is_private_email=_is_true(claims.get("is_private_email"))
            or email.lower().endswith(RELAY),
            name=_name(self.transaction.callback.get("user", "")),
        )


def _is_true(value: object) -> bool:
    """Return True for Apple's booleans, which may be strings."""
    return value is True or value == "true"


def _name(user: str) -> str:
    """Return the user's name, which Apple sends at the first sign-in only."""
    try:
        name = json.loads(user)["name"]
        parts = [name.get("firstName"), name.get("lastName")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    return one_line(" ".join(part for part in parts if isinstance(part, str)), max_chars=200)
