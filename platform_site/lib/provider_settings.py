"""Settings of external sign-in: the providers, where a browser may be sent back to, DNS.

A provider is configured by its client id; what else it needs is then asked for by name.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from platform_site.env import Env, SettingError

# Some providers' secrets have 32 characters, none has fewer than this.
MIN_SECRET_CHARS: Final = 16
# Each mapping of a provider may cost a sign-in one call to it.
MOST_MAPPINGS: Final = 50
GITHUB_GROUP: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?"
)
DISCORD_GROUP: Final = re.compile(r"[0-9]{15,20}(/[0-9]{15,20})?")
DOMAIN: Final = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]+")
_MAPPING: Final = re.compile(r"(\S+)=([1-9][0-9]{0,17}):(admin|operator|reader)")


class RoleMapping(NamedTuple):
    """Who is in a provider's group has a role in an organization.

    group: as the provider names it: ``organization``, ``organization/team``, ``guild/role``.
    """

    group: str
    organization_id: int
    role: str


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What one provider was configured with.

    base_url: where its endpoints are instead of their usual place; '' for that place.
    domains: Google's: accounts of other Workspace domains are refused; none allows all.
    mappings: GitHub's and Discord's, in the order in which they name a new user's organization.
    team_id, key_id, private_key: Apple's, from which the client secret is made.
    """

    client_id: str
    client_secret: str = field(default="", repr=False)
    base_url: str = ""
    domains: tuple[str, ...] = ()
    mappings: tuple[RoleMapping, ...] = ()
    team_id: str = ""
    key_id: str = ""
    private_key: str = field(default="", repr=False)


class External(NamedTuple):
    """Everything about external sign-in; ``providers`` holds the configured ones alone."""

    providers: Mapping[str, ProviderSettings]
    redirect_base_url: str
    redirects: tuple[str, ...]
    starts_per_address: int
    timeout_s: int
    resolvers: tuple[tuple[str, int], ...]


def read(env: Env, *, public_url: str) -> External:
    """Give the settings of external sign-in.

    public_url: where people reach this service, for the default.
    Raises SettingError, also for a configured provider that lacks something.
    """
    found = {
        "google": _google(env),
        "github": _github(env),
        "discord": _discord(env),
        "apple": _apple(env),
    }
    providers = {name: provider for name, provider in found.items() if provider is not None}
    base_url = _redirect_base_url(env, public_url)
    if providers and not _is_secure(base_url):
        # Codes would travel in clear, and no browser would keep the cookie that binds them.
        raise SettingError("OAUTH_REDIRECT_BASE_URL", "must be https for external sign-in.")
    return External(
        providers=providers,
        redirect_base_url=base_url,
        redirects=_redirects(env),
        starts_per_address=env.integer(
            "ZLIMIT_OAUTH_STARTS_PER_ADDRESS",
            600,
            help_text="External sign-ins begun per client address in 15 minutes.",
            minimum=1,
        ),
        timeout_s=env.integer(
            "ZOAUTH_TIMEOUT_SECS",
            5,
            help_text="Longest silence of an identity provider; an answer of its may take twice as "
            "long, all that a sign-in asks three times.",
            minimum=1,
            maximum=30,
        ),
        resolvers=_resolvers(env),
    )


def _google(env: Env) -> ProviderSettings | None:
    client_id, client_secret, base_url = _client(env, "GOOGLE", "https://accounts.google.com")
    domains = env.words(
        "GOOGLE_DOMAINS",
        help_text="Google Workspace domains whose accounts may sign in; unset, every Google "
        "account may.",
    )
    for domain in domains:
        if not DOMAIN.fullmatch(domain.lower()):
            raise SettingError("GOOGLE_DOMAINS", f"must list domains, not {domain!r}.")
    if not _is_configured("GOOGLE", client_id, {"GOOGLE_CLIENT_SECRET": client_secret}):
        return None
    allowed = tuple(domain.lower() for domain in domains)
    return ProviderSettings(client_id, client_secret, base_url, domains=allowed)


def _github(env: Env) -> ProviderSettings | None:
    client_id, client_secret, base_url = _client(env, "GITHUB", "https://github.com")
    mappings = _mappings(
        env,
        "GITHUB_ROLES",
        GITHUB_GROUP,
        help_text="Roles by GitHub organization or team: `acme=7:reader, acme/platform=7:admin` "
        "(7 is the organization's id here). A new user joins the first one that fits.",
    )
    if not _is_configured("GITHUB", client_id, {"GITHUB_CLIENT_SECRET": client_secret}):
        return None
    # GitHub's names know no case.
    folded = tuple(row._replace(group=row.group.lower()) for row in mappings)
    return ProviderSettings(client_id, client_secret, base_url, mappings=folded)


def _discord(env: Env) -> ProviderSettings | None:
    client_id, client_secret, base_url = _client(env, "DISCORD", "https://discord.com")
    mappings = _mappings(
        env,
        "DISCORD_ROLES",
        DISCORD_GROUP,
        help_text="Roles by Discord server or role in it, by their ids: "
        "`613425648685547541=7:reader, 613425648685547541/936746847437983786=7:admin`.",
    )
    if not _is_configured("DISCORD", client_id, {"DISCORD_CLIENT_SECRET": client_secret}):
        return None
    return ProviderSettings(client_id, client_secret, base_url, mappings=mappings)


def _apple(env: Env) -> ProviderSettings | None:
    client_id, client_secret, base_url = _client(env, "APPLE", "https://appleid.apple.com")
    team_id = env.text("APPLE_TEAM_ID", help_text="Apple's id of the developer team.")
    key_id = env.text("APPLE_KEY_ID", help_text="Id of APPLE_PRIVATE_KEY.")
    # In a variable of one line its line breaks are usually written out.
    private_key = env.secret(
        "APPLE_PRIVATE_KEY",
        help_text="The key Apple gave for Sign in with Apple (PEM); each client secret is made "
        "from it and lives five minutes.",
    ).replace("\\n", "\n")
    needed = {"APPLE_TEAM_ID": team_id, "APPLE_KEY_ID": key_id, "APPLE_PRIVATE_KEY": private_key}
    if client_secret:
        # Made elsewhere from the same key: Apple takes it for six months at most.
        needed = {}
    if not _is_configured("APPLE", client_id, needed):
        return None
    if private_key:
        _check_private_key(private_key)
    return ProviderSettings(
        client_id,
        client_secret,
        base_url,
        team_id=team_id,
        key_id=key_id,
        private_key=private_key,
    )


def _client(env: Env, prefix: str, usual: str) -> tuple[str, str, str]:
    title = prefix.capitalize() if prefix != "GITHUB" else "GitHub"
    client_id = env.text(
        f"{prefix}_CLIENT_ID", help_text=f"Client id at {title}; set, it turns the sign-in on."
    )
    client_secret = env.secret(
        f"{prefix}_CLIENT_SECRET",
        help_text=f"Client secret at {title}."
        if prefix != "APPLE"
        else "A client secret made elsewhere; better leave it unset and give APPLE_PRIVATE_KEY.",
        min_chars=MIN_SECRET_CHARS,
    )
    base_url = env.url(
        f"{prefix}_BASE_URL",
        help_text=f"Where {title}'s endpoints are, for an enterprise host or a stand-in; "
        f"unset, {usual} and its hosts.",
        schemes=("https", "http"),
    )
    return client_id, client_secret, base_url.rstrip("/")


def _is_configured(prefix: str, client_id: str, needed: Mapping[str, str]) -> bool:
    for name, value in needed.items():
        if client_id and not value:
            raise SettingError(name, f"is needed beside {prefix}_CLIENT_ID.")
    return bool(client_id)


def _check_private_key(private_key: str) -> None:
    try:
        key = load_pem_private_key(private_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not (isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1"):
        raise SettingError("APPLE_PRIVATE_KEY", "must be a P-256 private key in PEM form.")


def _mappings(
    env: Env, name: str, group: re.Pattern[str], *, help_text: str
) -> tuple[RoleMapping, ...]:
    rows = []
    for word in env.words(name, help_text=help_text):
        found = _MAPPING.fullmatch(word)
        if found is None or not group.fullmatch(found[1]):
            raise SettingError(name, f"must list group=organization:role, not {word!r}.")
        rows.append(RoleMapping(found[1], int(found[2]), found[3]))
    if len(rows) > MOST_MAPPINGS:
        raise SettingError(name, f"may list {MOST_MAPPINGS} mappings at most.")
    return tuple(rows)


def _redirect_base_url(env: Env, public_url: str) -> str:
    given = env.url(
        "OAUTH_REDIRECT_BASE_URL",
        help_text="Where this service is reached, as providers know it: they send browsers back "
        "to OAUTH_REDIRECT_BASE_URL/v1/auth/oauth/PROVIDER/callback. Unset, ZPUBLIC_URL.",
        schemes=("https", "http"),
    ).rstrip("/")
    if given and not (_is_secure(given) and urlsplit(given)[2:] == ("", "", "")):
        raise SettingError(
            "OAUTH_REDIRECT_BASE_URL",
            "must be like https://zonal.example.com (http only for this machine, no path).",
        )
    return given or public_url


def _redirects(env: Env) -> tuple[str, ...]:
    words = env.words(
        "ZOAUTH_REDIRECTS",
        help_text="URLs, compared character for character, to which external sign-ins may return; "
        "the console always may. An app's own scheme (`com.example.app:/done`) is fine.",
    )
    for word in words:
        if not _is_redirect(word):
            raise SettingError(
                "ZOAUTH_REDIRECTS",
                f"must list absolute URLs (https, http for this machine, or a scheme with a dot "
                f"in it) without a fragment, not {word!r}.",
            )
    return words


def _resolvers(env: Env) -> tuple[tuple[str, int], ...]:
    words = env.words(
        "ZDNS_RESOLVERS",
        help_text="Addresses (`192.0.2.53`, with a port `192.0.2.53:5353`) of the DNS resolvers "
        "that proofs of domains are looked up with; unset, the system's.",
    )
    found = []
    for word in words:
        try:
            parts = urlsplit(f"//{word}")
            address = str(ipaddress.ip_address(parts.hostname or ""))
            found.append((address, parts.port or 53))
        except ValueError as exc:
            raise SettingError("ZDNS_RESOLVERS", f"must list addresses, not {word!r}.") from exc
    return tuple(found)


def _is_redirect(url: str) -> bool:
    parts = urlsplit(url)
    if parts.fragment or not url.isascii() or not url.isprintable():
        return False
    if parts.scheme in {"http", "https"}:
        return _is_secure(url)
    # RFC 8252 §7.1: an app's scheme is a domain name of its maker's, backwards.
    return "." in parts.scheme


def _is_secure(url: str) -> bool:
    """Say whether a URL is https, or http that never leaves this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or not host:
        return False
    return parts.scheme == "https" or _is_local(host)


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
