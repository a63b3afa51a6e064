"""Settings of the platform itself: server, addresses, keys, control database, logs."""

import base64
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from psycopg import Error as PsycopgError
from psycopg.conninfo import conninfo_to_dict

from common.settings.table import (
    POSTGRESQL_SCHEMES,
    choice,
    flag,
    integer,
    secret,
    secret_list,
    text,
    url,
    words,
)

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

FEATURES: Final = ("cache",)
BIND: Final = re.compile(
    r"(?:[A-Za-z0-9._-]*|\[[0-9a-fA-F:.%]+\])(?::[0-9]{1,5})?|unix:/\S+|fd://[0-9]+", re.ASCII
)
FERNET_BYTES: Final = 32
HOST: Final = re.compile(r"\.?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.ASCII | re.IGNORECASE)
ENCODED: Final = "Write / and @ of a password as %2F and %40."


def _features(words: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(word for word in words if word != "none")
    for word in chosen:
        if word not in FEATURES:
            raise ValueError(f"may hold {', '.join(FEATURES)}.")
    return chosen


def _origin(url: str) -> str:
    """Return an origin in lower case without a trailing slash."""
    if not url:
        return ""
    try:
        parts = urlsplit(url.lower())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    is_bare = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if not (host and is_bare and url.isascii() and url.isprintable() and " " not in url):
        raise ValueError("must be an origin like https://app.example.com, without a path.")
    return f"{parts.scheme}://{parts.netloc}"


def _hosts(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return names as Django compares them with a request's Host, without its port.

    Raises ValueError for what no Host can match.
    """
    for word in words:
        if word != "*" and not (HOST.fullmatch(word) or _is_bracketed(word)):
            raise ValueError(
                "must list host names like app.example.com, addresses, or .example.com for all "
                "names below one: without scheme, port, path or blanks."
            )
    return words


def _is_bracketed(word: str) -> bool:
    try:
        ipaddress.IPv6Address(word.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return word.startswith("[") and word.endswith("]")


def postgresql_url(url: str) -> str:
    """Return a URL of PostgreSQL that libpq can read.

    Raises ValueError also for what is left of a password whose / or @ is not encoded: libpq would
    take it for a host or a port, and name it in its errors.
    """
    if not url:
        return ""
    try:
        parts = conninfo_to_dict(url)
    except PsycopgError:
        raise ValueError("is not a URL that libpq can read.") from None
    ports = str(parts.get("port") or "").replace(",", "")
    if "@" in str(parts.get("host") or "") or (ports and not ports.isdecimal()):
        raise ValueError(f"has a wrong host or port. {ENCODED}")
    return url


def _bind(text: str) -> str:
    if text and not BIND.fullmatch(text):
        raise ValueError("must be like 127.0.0.1:8000, [::1]:8000 or unix:/run/zonal.sock.")
    return text


def _fernet_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    for key in keys:
        try:
            is_key = len(base64.urlsafe_b64decode(key)) == FERNET_BYTES
        except ValueError:
            is_key = False
        if not is_key:
            raise ValueError("must list keys of 32 random bytes as URL-safe base64.")
    return keys


def _networks(given: tuple[str, ...]) -> tuple[IpNetwork, ...]:
    try:
        return tuple(ipaddress.ip_network(each) for each in given)
    except ValueError:
        raise ValueError("must be addresses or networks, as 127.0.0.1 or 10.0.0.0/8.") from None


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise ValueError("must be a decimal number such as 0.01.") from None
    if not 0 <= share <= 1:
        raise ValueError("must be from 0 to 1.")
    return share


def _resolvers(words: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    found = []
    for word in words:
        try:
            parts = urlsplit(f"//{word}")
            address = str(ipaddress.ip_address(parts.hostname or ""))
            found.append((address, parts.port or 53))
        except ValueError as exc:
            raise ValueError("must list addresses, with a port at most.") from exc
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The web server, its addresses and its limits. None and '' are replaced in settings.py."""

    data_dir: str = text(
        "ZDATA_DIR", "Folder of the data that an installation must not lose.", shown="./var"
    )
    postgres_bindir: str = text(
        "ZPG_BINDIR",
        "Folder of PostgreSQL's programs (15 to 18): servers for `up`, pg_dump for backups.",
        shown="the bundled PostgreSQL 18",
    )
    is_production: bool = flag(
        "PRODUCTION",
        "Production: development tokens are refused, and no process starts with what "
        "`manage.py check --deploy` calls an error, or with keys that are not the database's. "
        "NODE_ENV, DJANGO_ENV and the markers of hosting platforms count as well.",
        default=False,
    )
    features: tuple[str, ...] = words(
        "ZFEATURES",
        "Optional parts of the platform; without `cache` the edge cache's routes are 404. "
        "`none` disables all of them.",
        default=FEATURES,
        parse=_features,
    )
    port: int = integer("PORT", "Port of the web server.", default=8000, minimum=1, maximum=65535)
    bind: str = text("ZBIND", "Address and port to listen on.", shown="127.0.0.1:PORT", parse=_bind)
    web_workers: int = integer(
        "ZWEB_WORKERS", "Web server processes.", default=2, minimum=1, maximum=256
    )
    web_threads: int = integer(
        "ZWEB_THREADS",
        "Threads in each web server process; SQL may use two thirds of them.",
        default=64,
        minimum=1,
        maximum=256,
    )
    traces_url: str = url(
        "ZTRACES_URL",
        "Where traces are sent: a collector's OTLP over HTTP, as `http://127.0.0.1:4318`. "
        "Unset, there are none. Needs the packages of the extra `traces`.",
    )
    traces_share: float = text(
        "ZTRACES_SHARE",
        "The share of requests that are traced, from 0 to 1.",
        default="0.01",
        parse=_share,
    )
    service_name: str = text(
        "SERVICE_NAME", "Short name: prefix of development tokens, token issuer.", default="zonal"
    )
    allowed_hosts: tuple[str, ...] = words(
        "ZALLOWED_HOSTS",
        "Host names this service answers to; required in production.",
        shown="localhost, 127.0.0.1, [::1], testserver",
        parse=_hosts,
    )
    public_url: str = url(
        "ZPUBLIC_URL",
        "Where people reach this service, as `https://app.example.com`: links in mails begin "
        "with it. Required in production; unset elsewhere, `http://localhost:PORT`.",
        parse=_origin,
    )
    hsts: str = choice(
        "ZHSTS",
        "Names for which browsers use https alone, for a year: this `host` (the default in "
        "production), its `subdomains` too, or with `preload` also in browsers' lists, which takes "
        "months to undo; with `none` http is answered.",
        options=("none", "host", "subdomains", "preload"),
        shown="none",
    )
    trusted_proxies: tuple[IpNetwork, ...] = words(
        "ZTRUSTED_PROXIES",
        "Addresses or networks of your own proxies and edges, in front of the web server and of "
        "the brain: X-Forwarded-For, X-Forwarded-Proto and ZCACHE_REGION_HEADER count from these "
        "alone. The client is the rightmost address that is none of theirs.",
        parse=_networks,
    )
    static_root: str = text(
        "ZSTATIC_ROOT",
        "Where `collectstatic` puts the pages' files; unset, they are served from where the "
        "packages keep them.",
    )
    dns_resolvers: tuple[tuple[str, int], ...] = words(
        "ZDNS_RESOLVERS",
        "Addresses (`192.0.2.53`, with a port `192.0.2.53:5353`) of the DNS resolvers for "
        "proofs of domains; unset, the system's.",
        parse=_resolvers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSettings:
    """Keys of the platform. '' and () are replaced by random ones in settings.py."""

    secret_key: str = secret("SECRET_KEY", "Django's signing key (admin sessions).")
    encryption_keys: tuple[str, ...] = secret_list(
        "ZSECRET_KEYS",
        "Fernet keys (32 random bytes as URL-safe base64) that encrypt secrets at rest, the "
        "current one first; "
        "losing them loses the tenants' database passwords and second factors.",
        parse=_fernet_keys,
    )
    metrics_token: str = secret(
        "ZMETRICS_TOKEN", "Bearer token for /metrics from elsewhere than loopback."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """The control database."""

    url: str = url(
        "DATABASE_URL",
        "The control database; unset, `up` runs its own.",
        schemes=POSTGRESQL_SCHEMES,
        parse=postgresql_url,
    )
    pool_size: int = integer(
        "ZDB_POOL_SIZE",
        "Connections to the control database per web process, shared by its threads; "
        "with 0 each thread keeps its own connection.",
        default=0,
        maximum=1000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Format and level of log lines. format: '' is replaced in settings.py."""

    format: str = choice(
        "ZLOG_FORMAT",
        "Log lines as JSON (the default in production), or for reading.",
        options=("json", "console"),
        shown="console",
    )
    level: str = choice(
        "ZLOG_LEVEL",
        "Least severity that is logged.",
        default="info",
        options=("debug", "info", "warning", "error"),
    )


TABLES: Final = (ServerSettings, SecretSettings, DatabaseSettings, LogSettings)


def default_public_url(hosts: Sequence[str], *, port: int, is_production: bool) -> str:
    """Return the origin for links in mails if ZPUBLIC_URL is unset.

    hosts: the names of this service; in production the first one is used.
    """
    named = [host for host in hosts if host.strip("*.") == host and host]
    if is_production and named:
        return f"https://{named[0]}"
    return f"http://localhost:{port}"


SESSION: Final = r"-c default_transaction_isolation=read\ committed -c DateStyle=ISO"


def control_database(url: str, connections: int) -> dict[str, Any]:
    """Return Django's DATABASES entry for a libpq URL.

    connections: the size of the process's pool; 0 means one connection per thread.
    """
    parts = dict(conninfo_to_dict(url))
    # What the code takes for granted, whatever the server's defaults; the URL's own come last.
    session = f"{SESSION} {parts.pop('options', '')}".strip()
    options: dict[str, Any] = {
        "connect_timeout": 2,
        "application_name": "zonal",
        "options": session,
        # An idle connection whose server vanished ends within seconds, before it is used.
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
    }
    entry: dict[str, Any] = {
        "ENGINE": "common.database.backend",
        "NAME": parts.pop("dbname", "") or "zonal",
        "USER": parts.pop("user", "") or "",
        "PASSWORD": parts.pop("password", "") or "",
        "HOST": parts.pop("host", "") or "",
        "PORT": str(parts.pop("port", "") or ""),
        "CONN_MAX_AGE": 0 if connections else None,
        "OPTIONS": options | parts,
    }
    if connections:
        # A short timeout: without a database requests must fail quickly with 503 and not queue.
        # The pauses between tries to connect double until the reconnect_timeout, then start again.
        entry["OPTIONS"]["pool"] = {
            "min_size": 1,
            "max_size": connections,
            "timeout": 2,
            "reconnect_timeout": 2,
        }
    return entry
