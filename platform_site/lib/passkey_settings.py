"""Settings of passkeys: the origins they may be made and used on, and the RP ID they belong to."""

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from platform_site.env import Env, SettingError

_PORTS: Final = {"https": 443, "http": 80}


def origins(env: Env, hosts: Iterable[str], *, port: int, is_production: bool) -> tuple[str, ...]:
    """Give ZWEBAUTHN_ORIGINS as browsers spell them; none means that there are no passkeys.

    hosts: the names this service answers to, for the default.
    Raises SettingError.
    """
    given = env.words(
        "ZWEBAUTHN_ORIGINS",
        help_text="Origins on which passkeys are made and used, as `https://app.example.com`; "
        "unset, `https://` and each name of ZALLOWED_HOSTS in production, else "
        "`http://localhost:PORT` and `http://localhost:8000`.",
    )
    if given:
        return tuple(dict.fromkeys(_origin(word) for word in given))
    if is_production:
        return tuple(f"https://{host.lower()}" for host in hosts if _is_name(host))
    return tuple(dict.fromkeys([f"http://localhost:{port}", "http://localhost:8000"]))


def rp_id(env: Env, allowed: Iterable[str]) -> str:
    """Give ZWEBAUTHN_RP_ID, '' where the host of the first origin is meant.

    Raises SettingError for one that none of the origins belongs to.
    """
    value = env.text(
        "ZWEBAUTHN_RP_ID",
        help_text="Domain that passkeys belong to: the host of an origin, or a parent of it. "
        "Changing it makes every passkey useless.",
        shown="the host of the first origin",
    ).lower()
    found = [urlsplit(origin).hostname or "" for origin in allowed]
    fits = any(host == value or host.endswith(f".{value}") for host in found)
    # A name without a dot would be a whole top-level domain.
    if value and not (fits and (value == "localhost" or "." in value)):
        raise SettingError("ZWEBAUTHN_RP_ID", "must be the host of an origin, or a parent of it.")
    return value


def _origin(word: str) -> str:
    try:
        parts = urlsplit(word.lower())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    is_local = host == "localhost" or host.endswith(".localhost")
    is_bare = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and is_local)
    if not (is_bare and is_secure and (is_local or _is_name(host))):
        raise SettingError(
            "ZWEBAUTHN_ORIGINS",
            "must list origins like https://app.example.com (http only for localhost, "
            f"no addresses, no paths), not {word!r}.",
        )
    # Browsers leave the scheme's own port out.
    tail = f":{port}" if port and port != _PORTS[parts.scheme] else ""
    return f"{parts.scheme}://{host}{tail}"


def _is_name(host: str) -> bool:
    """Say whether this is a domain name: passkeys do not belong to addresses or patterns."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host.isascii() and "." in host.strip(".") and host[:1].isalnum()
    return False
