"""Settings of the second factor: text messages, and the origins and RP ID of passkeys."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from phonenumbers import SUPPORTED_REGIONS

from common.settings.env import Env, SettingError
from common.settings.table import (
    integer,
    load,
    text,
    words,
)

_PORTS: Final = {"https": 443, "http": 80}


def _origins(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_origin(word) for word in words))


def _countries(words: tuple[str, ...]) -> frozenset[str]:
    if not SUPPORTED_REGIONS.issuperset(words):
        raise ValueError("must list ISO 3166 codes such as DE, AT.")
    return frozenset(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoFactorSettings:
    """The limit of text messages, and where passkeys work.

    webauthn_origins: as browsers send them; without any there are no passkeys.
    webauthn_rp_id: '' means the host of the first origin.
    """

    webauthn_origins: tuple[str, ...] = words(
        "ZWEBAUTHN_ORIGINS",
        "Origins on which passkeys are created and used, such as `https://app.example.com`; "
        "unset, `https://` and each name of ZALLOWED_HOSTS in production, else "
        "`http://localhost:PORT` and `http://localhost:8000`.",
        parse=_origins,
    )
    webauthn_rp_id: str = text(
        "ZWEBAUTHN_RP_ID",
        "Domain that passkeys belong to: the host of an origin, or a parent of it. "
        "Changing it makes every passkey useless.",
        shown="the host of the first origin",
        parse=str.lower,
    )
    texts_per_day: int = integer(
        "ZSMS_CODES_PER_DAY",
        "Codes by text message that this installation sends, counted separately for setting "
        "factors up, for signing in and for recoveries; it bounds what an attacker who earns "
        "by messages costs.",
        default=5000,
        unit="per day",
        minimum=1,
    )
    sms_countries: frozenset[str] = words(
        "ZSMS_COUNTRIES",
        "Countries whose numbers get codes, as `DE, AT, CH`.",
        shown="all",
        parse=_countries,
    )


TABLES: Final = (TwoFactorSettings,)


def read(env: Env, hosts: Iterable[str], *, port: int, is_production: bool) -> TwoFactorSettings:
    """Return the settings of the second factor.

    hosts: the names of this service, for the default of the origins.
    Raises SettingError, also for an RP ID that does not match any origin.
    """
    chosen = load(TwoFactorSettings, env)
    origins = chosen.webauthn_origins or _default_origins(hosts, port, is_production)
    if chosen.webauthn_rp_id and not _is_rp_id(chosen.webauthn_rp_id, origins):
        raise SettingError("ZWEBAUTHN_RP_ID", "must be the host of an origin, or a parent of it.")
    return replace(chosen, webauthn_origins=origins)


def _default_origins(hosts: Iterable[str], port: int, is_production: bool) -> tuple[str, ...]:
    if is_production:
        return tuple(f"https://{host.lower()}" for host in hosts if _is_name(host))
    return tuple(dict.fromkeys([f"http://localhost:{port}", "http://localhost:8000"]))


def _is_rp_id(rp_id: str, origins: Iterable[str]) -> bool:
    found = [urlsplit(origin).hostname or "" for origin in origins]
    fits = any(host == rp_id or host.endswith(f".{rp_id}") for host in found)
    # A name without a dot would be a top-level domain.
    return fits and (rp_id == "localhost" or "." in rp_id)


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
        raise ValueError(
            "must list origins like https://app.example.com (http only for localhost, "
            "no addresses, no paths)."
        )
    # Browsers omit the scheme's default port.
    tail = f":{port}" if port and port != _PORTS[parts.scheme] else ""
    return f"{parts.scheme}://{host}{tail}"


def _is_name(host: str) -> bool:
    """True for a domain name; passkeys cannot belong to IP addresses or patterns."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host.isascii() and "." in host.strip(".") and host[:1].isalnum()
    return False
