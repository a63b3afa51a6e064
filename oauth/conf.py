"""Settings of external sign-in: where a browser may return to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from common.settings.env import Env, SettingError
from common.settings.table import (
    load,
    url,
    words,
)
from common.web.hostnames import is_secure_url
from oauth.providers import conf as provider_conf
from oauth.providers.conf import ProviderSettings


def _base_url(url: str) -> str:
    origin = url.rstrip("/")
    if origin and not (is_secure_url(origin) and urlsplit(origin)[2:] == ("", "", "")):
        raise ValueError(
            "must be like https://zonal.example.com (http only for this machine, no path)."
        )
    return origin


def _redirects(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if not _is_redirect(word):
            raise ValueError(
                "must list https URLs (http only for this machine) or an app's scheme with a dot, "
                "without a fragment."
            )
    return words


def _is_redirect(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.fragment or not url.isascii() or not url.isprintable():
        return False
    if parts.scheme in {"http", "https"}:
        return is_secure_url(url)
    # RFC 8252 §7.1: the scheme of an app is its vendor's domain name in reverse.
    return "." in parts.scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """Settings of external sign-in; ``providers`` has only those that are configured."""

    providers: Mapping[str, ProviderSettings]
    redirect_base_url: str = url(
        "OAUTH_REDIRECT_BASE_URL",
        "Where this service is reached, as providers know it: they send browsers back to "
        "OAUTH_REDIRECT_BASE_URL/v1/auth/oauth/PROVIDER/callback. Unset, ZPUBLIC_URL.",
        parse=_base_url,
    )
    redirects: tuple[str, ...] = words(
        "ZOAUTH_REDIRECTS",
        "URLs, compared character for character, to which external sign-ins may return; "
        "the console always may. An app's own scheme (`com.example.app:/done`) is fine.",
        parse=_redirects,
    )


TABLES: Final = (OAuthSettings,)


def read(env: Env, *, public_url: str) -> OAuthSettings:
    """Return the settings of external sign-in.

    public_url: this service's URL, for the default.
    Raises SettingError, also for a configured provider that lacks something.
    """
    providers = provider_conf.read(env)
    given = load(OAuthSettings, env, providers=providers)
    base_url = given.redirect_base_url or public_url
    if providers and not is_secure_url(base_url):
        # Codes would be sent unencrypted, and no browser would store the cookie that binds them.
        raise SettingError("OAUTH_REDIRECT_BASE_URL", "must be https for external sign-in.")
    return replace(given, redirect_base_url=base_url)
