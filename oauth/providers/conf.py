"""Settings of the identity providers.

A provider is configured by its client id; its other settings are then required.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from common.settings.env import Env, SettingError
from common.settings.table import (
    load,
    secret,
    text,
    url,
    words,
)
from common.web.hostnames import DOMAIN

# Some providers' secrets have 32 characters, none has fewer than this.
MIN_SECRET_CHARS: Final = 16
# Each mapping of a provider may cost a sign-in one call to it.
MAX_MAPPINGS: Final = 50
GITHUB_GROUP: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?"
)
DISCORD_GROUP: Final = re.compile(r"[0-9]{15,20}(/[0-9]{15,20})?")
_MAPPING: Final = re.compile(r"(\S+)=([1-9][0-9]{0,17}):(admin|operator|reader)")


class RoleMapping(NamedTuple):
    """Members of a provider's group have a role in an organization.

    group: as the provider names it: ``organization``, ``organization/team``, ``guild/role``.
    """

    group: str
    organization_id: int
    role: str


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The configuration of one provider.

    base_url: of its endpoints; '' for the provider's own, as for all but GitHub outside tests.
    domains: for Google: accounts of other Workspace domains are refused; empty allows all.
    mappings: for GitHub and Discord: the first match is a new user's organization.
    team_id, key_id, private_key: for Apple, to sign the client secret with.
    """

    client_id: str
    client_secret: str = field(default="", repr=False)
    base_url: str = ""
    domains: tuple[str, ...] = ()
    mappings: tuple[RoleMapping, ...] = ()
    team_id: str = ""
    key_id: str = ""
    private_key: str = field(default="", repr=False)


def _client_id(prefix: str, title: str) -> Any:
    return text(f"{prefix}_CLIENT_ID", f"Client id at {title}; setting it enables the sign-in.")


def _client_secret(prefix: str, title: str) -> Any:
    return secret(
        f"{prefix}_CLIENT_SECRET", f"Client secret at {title}.", min_chars=MIN_SECRET_CHARS
    )


def _without_slash(url: str) -> str:
    return url.rstrip("/")


def _domains(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if not DOMAIN.fullmatch(word.lower()):
            raise ValueError("must list domains, such as example.com.")
    return tuple(word.lower() for word in words)


def _mappings(words: tuple[str, ...], group: re.Pattern[str]) -> tuple[RoleMapping, ...]:
    found = []
    for word in words:
        match = _MAPPING.fullmatch(word)
        if match is None or not group.fullmatch(match[1]):
            raise ValueError("must list group=organization:role.")
        found.append(RoleMapping(match[1], int(match[2]), match[3]))
    if len(found) > MAX_MAPPINGS:
        raise ValueError(f"may list {MAX_MAPPINGS} mappings at most.")
    return tuple(found)


def _github_mappings(words: tuple[str, ...]) -> tuple[RoleMapping, ...]:
    # GitHub's names are case-insensitive.
    return tuple(row._replace(group=row.group.lower()) for row in _mappings(words, GITHUB_GROUP))


def _discord_mappings(words: tuple[str, ...]) -> tuple[RoleMapping, ...]:
    return _mappings(words, DISCORD_GROUP)


def _private_key(text: str) -> str:
    # In an environment variable line breaks are usually written as \n.
    return text.replace("\\n", "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleSettings:
    """Sign-in with Google."""

    client_id: str = _client_id("GOOGLE", "Google")
    client_secret: str = _client_secret("GOOGLE", "Google")
    domains: tuple[str, ...] = words(
        "GOOGLE_DOMAINS",
        "Google Workspace domains whose accounts may sign in; unset, every Google account may.",
        parse=_domains,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubSettings:
    """Sign-in with GitHub."""

    client_id: str = _client_id("GITHUB", "GitHub")
    client_secret: str = _client_secret("GITHUB", "GitHub")
    base_url: str = url(
        "GITHUB_BASE_URL",
        "GitHub Enterprise Server; unset, https://github.com.",
        parse=_without_slash,
    )
    mappings: tuple[RoleMapping, ...] = words(
        "GITHUB_ROLES",
        "Roles by GitHub organization or team: `acme=7:reader, acme/platform=7:admin` "
        "(7 is the organization's id here). A new user joins the first one that fits.",
        parse=_github_mappings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordSettings:
    """Sign-in with Discord."""

    client_id: str = _client_id("DISCORD", "Discord")
    client_secret: str = _client_secret("DISCORD", "Discord")
    mappings: tuple[RoleMapping, ...] = words(
        "DISCORD_ROLES",
        "Roles by Discord server or role in it, by their ids: "
        "`613425648685547541=7:reader, 613425648685547541/936746847437983786=7:admin`.",
        parse=_discord_mappings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppleSettings:
    """Sign-in with Apple."""

    client_id: str = _client_id("APPLE", "Apple")
    client_secret: str = secret(
        "APPLE_CLIENT_SECRET",
        "A client secret made elsewhere; better leave it unset and set APPLE_PRIVATE_KEY.",
        min_chars=MIN_SECRET_CHARS,
    )
    team_id: str = text("APPLE_TEAM_ID", "Apple's id of the developer team.")
    key_id: str = text("APPLE_KEY_ID", "Id of APPLE_PRIVATE_KEY.")
    private_key: str = secret(
        "APPLE_PRIVATE_KEY",
        "The key from Apple for Sign in with Apple (PEM); each client secret is made from it "
        "and is valid for five minutes.",
        parse=_private_key,
    )


TABLES: Final = (GoogleSettings, GitHubSettings, DiscordSettings, AppleSettings)


def read(env: Env) -> dict[str, ProviderSettings]:
    """Return the configured providers by name.

    Raises SettingError, also for a configured provider that lacks something.
    """
    found = {
        "google": _google(load(GoogleSettings, env)),
        "github": _github(load(GitHubSettings, env)),
        "discord": _discord(load(DiscordSettings, env)),
        "apple": _apple(load(AppleSettings, env)),
    }
    return {name: provider for name, provider in found.items() if provider.client_id}


def _google(given: GoogleSettings) -> ProviderSettings:
    _require("GOOGLE", given.client_id, {"GOOGLE_CLIENT_SECRET": given.client_secret})
    return ProviderSettings(given.client_id, given.client_secret, domains=given.domains)


def _github(given: GitHubSettings) -> ProviderSettings:
    _require("GITHUB", given.client_id, {"GITHUB_CLIENT_SECRET": given.client_secret})
    return ProviderSettings(
        given.client_id, given.client_secret, given.base_url, mappings=given.mappings
    )


def _discord(given: DiscordSettings) -> ProviderSettings:
    _require("DISCORD", given.client_id, {"DISCORD_CLIENT_SECRET": given.client_secret})
    return ProviderSettings(given.client_id, given.client_secret, mappings=given.mappings)


def _apple(given: AppleSettings) -> ProviderSettings:
    # A client secret made elsewhere from the same key replaces the key; Apple accepts it for six
    # months at most.
    if not given.client_secret:
        needed = {
            "APPLE_TEAM_ID": given.team_id,
            "APPLE_KEY_ID": given.key_id,
            "APPLE_PRIVATE_KEY": given.private_key,
        }
        _require("APPLE", given.client_id, needed)
    if given.client_id and given.private_key:
        _check_private_key(given.private_key)
    return ProviderSettings(
        given.client_id,
        given.client_secret,
        team_id=given.team_id,
        key_id=given.key_id,
        private_key=given.private_key,
    )


def _require(prefix: str, client_id: str, needed: Mapping[str, str]) -> None:
    for name, value in needed.items():
        if client_id and not value:
            raise SettingError(name, f"is needed beside {prefix}_CLIENT_ID.")


def _check_private_key(private_key: str) -> None:
    try:
        key = load_pem_private_key(private_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not (isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1"):
        raise SettingError("APPLE_PRIVATE_KEY", "must be a P-256 private key in PEM form.")
