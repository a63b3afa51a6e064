"""Sign in with Apple: OpenID Connect with a client secret of our own making, answered by a form.

Source: https://developer.apple.com/documentation/signinwithapplerestapi
"""

import json
from typing import Any, Final

from social_core.backends.apple import AppleIdAuth

from accounts.oauth.errors import AccessDenied
from accounts.oauth.providers.backend import OpenIdClient
from accounts.oauth.providers.profile import Profile, address, one_line
from platform_site.lib.provider_settings import ProviderSettings

ISSUER: Final = "https://appleid.apple.com"
RELAY: Final = "@privaterelay.appleid.com"
CANCELLED: Final = frozenset({"user_cancelled_authorize", "user_cancelled_login"})


class Apple(OpenIdClient, AppleIdAuth[str]):
    """Apple's accounts. Apple takes no PKCE; the nonce binds its answer to the visit."""

    name = "apple"
    returns_by_post = True
    DEFAULT_SCOPE = ["name", "email"]
    SCOPE_SEPARATOR = " "
    # Apple takes one for six months; made for each exchange, it need not outlive it.
    TOKEN_TTL_SEC = 300

    @classmethod
    def options(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Give the endpoints, and what the client secret is made of."""
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
        """Give the issuer."""
        return (self.provider.base_url or ISSUER,)

    def generate_client_secret(self) -> str:
        """Give the secret that was made elsewhere, or one made of the key."""
        if self.provider.client_secret and not self.provider.private_key:
            return self.provider.client_secret
        return str(super().generate_client_secret())  # type: ignore[no-untyped-call]  # untyped there

    def finish(self) -> Profile:
        """Exchange the code; Apple has names of its own for somebody who changed their mind."""
        if self.visit.returned.get("error") in CANCELLED:
            raise AccessDenied
        return super().finish()

    def profile(self, answer: dict[str, Any]) -> Profile:
        """Read the ID token. The form beside it is unsigned: only the name is taken from it."""
        claims = self.id_token or {}
        email = address(claims.get("email"))
        return Profile(
            provider=self.name,
            subject=str(claims["sub"]),
            email=email,
            is_verified=_is_true(claims.get("email_verified")),
            is_private_email=_is_true(claims.get("is_private_email"))
            or email.lower().endswith(RELAY),
            name=_name(self.visit.returned.get("user", "")),
        )


def _is_true(value: object) -> bool:
    """Read Apple's booleans, which may be words."""
    return value is True or value == "true"


def _name(user: str) -> str:
    """Give the name, which Apple tells at first sight and never again."""
    try:
        name = json.loads(user)["name"]
        parts = [name.get("firstName"), name.get("lastName")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    return one_line(" ".join(part for part in parts if isinstance(part, str)), limit=200)
