"""Sign in with Google: OpenID Connect, all that matters stands in the ID token.

Source: https://developers.google.com/identity/openid-connect/openid-connect
"""

from typing import Any, Final

from social_core.backends.google_openidconnect import GoogleOpenIdConnect

from accounts.oauth.errors import DomainNotAllowed
from accounts.oauth.providers.backend import OpenIdClient
from accounts.oauth.providers.profile import Profile, address, one_line
from platform_site.lib.provider_settings import ProviderSettings

ISSUER: Final = "https://accounts.google.com"
# Google's tokens name it with or without the scheme.
ISSUERS: Final = (ISSUER, "accounts.google.com")


class Google(OpenIdClient, GoogleOpenIdConnect[str]):
    """Google's accounts, those of Workspace domains among them."""

    name = "google"

    @classmethod
    def options(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Give the endpoints, and the domain to suggest where there is only one."""
        base = provider.base_url
        options = {
            "KEY": provider.client_id,
            "SECRET": provider.client_secret,
            "AUTHORIZATION_URL": f"{base or ISSUER}/o/oauth2/v2/auth",
            "ACCESS_TOKEN_URL": f"{base or 'https://oauth2.googleapis.com'}/token",
            "JWKS_URI": f"{base or 'https://www.googleapis.com'}/oauth2/v3/certs",
            "TOKEN_ENDPOINT_AUTH_METHOD": "client_secret_post",
            "USE_PKCE": True,
            "AUTH_EXTRA_ARGUMENTS": {"prompt": "select_account"},
        }
        if len(provider.domains) == 1:
            options["AUTH_EXTRA_ARGUMENTS"] = {"hd": provider.domains[0]}
        return options

    def issuers(self) -> tuple[str, ...]:
        """Give the issuer, by both of its names."""
        return (self.provider.base_url,) if self.provider.base_url else ISSUERS

    def profile(self, answer: dict[str, Any]) -> Profile:
        """Read the ID token, which social-core has verified.

        ``hd`` is asked of the token: the parameter of the same name only suggests.
        Raises DomainNotAllowed.
        """
        claims = self.id_token or {}
        domain = one_line(claims.get("hd"), limit=253).lower()
        if self.provider.domains and domain not in self.provider.domains:
            raise DomainNotAllowed
        return Profile(
            provider=self.name,
            subject=str(claims["sub"]),
            email=address(claims.get("email")),
            is_verified=claims.get("email_verified") is True,
            name=one_line(claims.get("name"), limit=200),
            domain=domain,
        )
