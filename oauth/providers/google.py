"""Sign in with Google: OpenID Connect; the ID token contains the whole profile.

Source: https://developers.google.com/identity/openid-connect/openid-connect
"""

from typing import Any, Final

from django.http import HttpResponse
from social_core.backends.google_openidconnect import GoogleOpenIdConnect

from oauth.errors import DomainNotAllowed
from oauth.providers.backend import OpenIdBackend
from oauth.providers.conf import ProviderSettings
from oauth.providers.profile import Profile, email_or_blank, one_line

ISSUER: Final = "https://accounts.google.com"
# Google's tokens contain it with or without the scheme.
ISSUERS: Final = (ISSUER, "accounts.google.com")


class Google(OpenIdBackend, GoogleOpenIdConnect[HttpResponse]):
    """Google, with Workspace domains."""

    name = "google"

    @classmethod
    def social_settings(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Return the endpoints, and the domain to suggest if only one is allowed."""
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
        """Return both spellings of the issuer."""
        return (self.provider.base_url,) if self.provider.base_url else ISSUERS

    def read_profile(self, tokens: dict[str, Any]) -> Profile:
        """Read the ID token, which social-core has verified.

        ``hd`` is taken from the token: the request parameter of that name is only a suggestion.
        Raises DomainNotAllowed.
        """
        claims = self.id_token or {}
        domain = one_line(claims.get("hd"), max_chars=253).lower()
        if self.provider.domains and domain not in self.provider.domains:
            raise DomainNotAllowed
        return Profile(
            provider=self.name,
            subject=str(claims["sub"]),
            email=email_or_blank(claims.get("email")),
            is_verified=claims.get("email_verified") is True,
            name=one_line(claims.get("name"), max_chars=200),
            domain=domain,
        )
