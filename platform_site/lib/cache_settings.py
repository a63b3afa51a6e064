"""Settings of the edge cache: the platform's side of it, and the brain's own."""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from platform_site.env import Env, SettingError
from platform_site.lib.database_settings import SCHEMES

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FEATURES: Final = ("cache",)
MIB: Final = 2**20
SECRET_CHARS: Final = 32
# As nginx reads it after `unix:`, and with room for a temporary name in what the kernel takes.
SOCKET_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._@+-]+)+")
SOCKET_PATH_LIMIT: Final = 90
REGION: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How the platform reaches the brain. secret: empty where none is configured."""

    is_enabled: bool
    brain_url: str
    s3_url: str
    secret: str = field(repr=False)
    timeout_s: int
    metrics_interval_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where one of the brain's APIs listens; port_setting names what chooses another port."""

    address: str
    port: int
    port_setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Geography:
    """What tells a client's region, and how far regions are from one another.

    region: the brain's own, and a client's of whom nothing is known. coordinates: latitude and
    longitude of regions beyond the built-in table. networks: who is where, the narrowest network
    counts. header: in which edges of our own declare a client's region; believed from
    trusted_edges alone. geoip: a MaxMind database file.
    """

    region: str
    coordinates: dict[str, tuple[float, float]]
    networks: tuple[tuple[Network, str], ...]
    header: str
    trusted_edges: tuple[Network, ...]
    geoip: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainSettings:
    """All that a brain is told. database_url: of its own, else the control database's.

    previous_secrets: earlier ones, still accepted until the last process has the new one.
    data_dir: files of the brains that share it (the built-in origin's objects, uploads, fills).
    replicas: copies of an object; hot_replicas: of one that is asked for often.
    s3_socket: the object API's Unix socket beside its port.
    s3_domains: host names whose subdomains are buckets. index_bytes: of the directory in memory.
    staging_bytes: of unfinished bodies on disk, of all requests together. fills: fetches from
    origins at once. is_production: private endpoints are refused then.
    """

    internal: Listener
    s3: Listener
    s3_socket: Path | None
    workers: Listener
    workers_url: str
    tls_cert: Path | None
    tls_key: Path | None
    database_url: str = field(repr=False)
    secret: str = field(repr=False)
    previous_secrets: tuple[str, ...] = field(repr=False)
    data_dir: Path
    connections: int
    index_bytes: int
    staging_bytes: int
    fills: int
    replicas: int
    hot_replicas: int
    heartbeat_s: int
    s3_domains: tuple[str, ...]
    geography: Geography
    is_production: bool


def features(env: Env) -> tuple[str, ...]:
    """Give ZFEATURES: the optional parts that are compiled in.

    Raises SettingError for one that does not exist.
    """
    given = env.words(
        "ZFEATURES",
        FEATURES,
        help_text="Optional parts of the platform; without `cache` the edge cache's routes are "
        "404. `none` is no part at all.",
    )
    chosen = tuple(word for word in given if word != "none")
    for word in chosen:
        if word not in FEATURES:
            raise SettingError("ZFEATURES", f"may hold {', '.join(FEATURES)}, not {word!r}.")
    return chosen


def client(env: Env) -> ClientSettings:
    """Give the platform's side.

    Raises SettingError.
    """
    return ClientSettings(
        is_enabled=env.flag(
            "ZCACHE_ENABLED",
            default=True,
            help_text="Master switch: off, every cache call succeeds and does nothing.",
        ),
        brain_url=_api_url(env, "ZCACHE_BRAIN_URL", "ZBRAIN", 8081, "internal API"),
        s3_url=_api_url(env, "ZCACHE_BRAIN_S3_URL", "ZBRAIN_S3", 9000, "object API"),
        secret=env.secret(
            "ZCACHE_BRAIN_SECRET",
            help_text="Shared secret of the platform and the brain; the brain needs it to start.",
            min_chars=SECRET_CHARS,
            aliases=("BRAIN_SECRET",),
        ),
        timeout_s=env.integer(
            "ZCACHE_TIMEOUT", 10, help_text="Seconds a call to the brain may take.", minimum=1
        ),
        metrics_interval_s=env.integer(
            "ZCACHE_METRICS_INTERVAL",
            30,
            help_text="Seconds between two polls of the brain's metrics.",
            minimum=1,
            maximum=3600,
        ),
    )


def brain(
    env: Env, *, data_dir: Path, secret: str, database_url: str, is_production: bool
) -> BrainSettings:
    """Give the brain's side. database_url: the control database's.

    Raises SettingError.
    """
    workers = _listener(env, "ZBRAIN_WORKER", 8083, "workers' API")
    tls_cert, tls_key = _tls(env)
    scheme = "https" if tls_cert else "http"
    return BrainSettings(
        internal=_listener(env, "ZBRAIN", 8081, "internal API"),
        s3=_listener(env, "ZBRAIN_S3", 9000, "object API"),
        s3_socket=_socket(env),
        workers=workers,
        workers_url=_url(
            env,
            "ZBRAIN_WORKER_URL",
            f"{scheme}://127.0.0.1:{workers.port}",
            "workers' API, as workers are told it",
            shown="http://127.0.0.1:ZBRAIN_WORKER_PORT",
        ),
        tls_cert=tls_cert,
        tls_key=tls_key,
        database_url=own_database_url(env) or database_url,
        secret=secret,
        previous_secrets=env.secrets(
            "ZCACHE_BRAIN_SECRET_PREVIOUS",
            help_text="Earlier values of ZCACHE_BRAIN_SECRET that the brain still accepts.",
            min_chars=SECRET_CHARS,
        ),
        data_dir=data_dir / "brain",
        geography=_geography(env),
        is_production=is_production,
        s3_domains=env.words(
            "ZBRAIN_S3_DOMAINS",
            ("localhost",),
            help_text="Host names of the object API whose subdomains are buckets.",
        ),
        **_budgets(env),
    )


def own_database_url(env: Env) -> str:
    """Give ZBRAIN_DATABASE_URL; empty when the brain lives in the control database.

    Raises SettingError.
    """
    return env.url(
        "ZBRAIN_DATABASE_URL",
        help_text="A database for the brain alone; unset, it uses the control database.",
        schemes=SCHEMES,
    )


def _budgets(env: Env) -> dict[str, int]:
    def row(name: str, default: int, help_text: str, minimum: int, maximum: int) -> int:
        return env.integer(name, default, help_text=help_text, minimum=minimum, maximum=maximum)

    return {
        "connections": row(
            "ZBRAIN_CONNECTIONS", 8, "Connections of one brain to its database.", 2, 1000
        ),
        "index_bytes": MIB
        * row("ZBRAIN_INDEX_MIB", 1024, "Memory of the brain's directory.", 1, 2**20),
        "staging_bytes": MIB
        * row(
            "ZBRAIN_STAGING_MIB",
            20_480,
            "Disk that unfinished uploads and fills of one brain may take.",
            16,
            2**30,
        ),
        "fills": row("ZBRAIN_FILLS", 64, "Fetches from origins at once.", 1, 10_000),
        "replicas": row("ZCACHE_REPLICAS", 2, "Copies of an object on workers.", 1, 8),
        "hot_replicas": row(
            "ZCACHE_HOT_REPLICAS", 3, "Copies of an object that is asked for often.", 1, 16
        ),
        "heartbeat_s": row(
            "ZCACHE_HEARTBEAT", 10, "Seconds between two heartbeats of a worker.", 1, 300
        ),
    }


def _listener(env: Env, prefix: str, port: int, what: str) -> Listener:
    setting = f"{prefix}_PORT"
    return Listener(
        address=_address(env, f"{prefix}_BIND", f"Address that the brain's {what} listens on."),
        port=env.integer(
            setting, port, help_text=f"Port of the brain's {what}.", minimum=1, maximum=65535
        ),
        port_setting=setting,
    )


def _socket(env: Env) -> Path | None:
    name = "ZBRAIN_S3_SOCKET"
    text = env.text(
        name,
        help_text="A Unix socket for the object API beside its port, for an nginx on the same "
        "machine: cheaper than TCP.",
    )
    if not text:
        return None
    if not SOCKET_PATH.fullmatch(text) or len(text) > SOCKET_PATH_LIMIT:
        raise SettingError(
            name,
            f"must be an absolute path of at most {SOCKET_PATH_LIMIT} plain characters, not "
            f"{text!r}.",
        )
    return Path(text)


def _address(env: Env, name: str, help_text: str) -> str:
    text = env.text(name, "127.0.0.1", help_text=help_text)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise SettingError(name, f"must be an IP address, not {text!r}.") from None


def _api_url(env: Env, name: str, prefix: str, port: int, what: str) -> str:
    """Read where an API is; unset, it is on this machine, on the port that its listener has."""
    listener = _listener(env, prefix, port, what)
    default = f"http://127.0.0.1:{listener.port}"
    return _url(env, name, default, what, shown=f"http://127.0.0.1:{listener.port_setting}")


def _url(env: Env, name: str, default: str, what: str, *, shown: str) -> str:
    value = env.text(name, default, help_text=f"URL of the brain's {what}.", shown=shown)
    if not re.fullmatch(r"https?://[^\s/?#@]+", value.rstrip("/")):
        raise SettingError(name, f"must be like {default}, not {value!r}.")
    return value.rstrip("/")


def _tls(env: Env) -> tuple[Path | None, Path | None]:
    names = {"ZBRAIN_TLS_CERT": "certificate", "ZBRAIN_TLS_KEY": "private key"}
    given = {
        name: env.text(name, help_text=f"PEM file of the workers' API: its {what}.")
        for name, what in names.items()
    }
    missing = [name for name, value in given.items() if not value]
    if len(missing) == 1:
        raise SettingError(missing[0], "is missing: certificate and key belong together.")
    for name, value in given.items():
        if value and not Path(value).is_file():
            raise SettingError(name, f"names no file: {value!r}.")
    cert, key = (Path(value) if value else None for value in given.values())
    return cert, key


def _geography(env: Env) -> Geography:
    geoip = env.text("ZCACHE_GEOIP", help_text="A MaxMind database (.mmdb) that locates clients.")
    if geoip and not Path(geoip).is_file():
        raise SettingError("ZCACHE_GEOIP", f"names no file: {geoip!r}.")
    return Geography(
        region=_region(
            "ZCACHE_REGION",
            env.text(
                "ZCACHE_REGION",
                "eu-central",
                help_text="The brain's own region, and that of a client who cannot be located.",
            ),
        ),
        coordinates=_coordinates(env),
        networks=_networks(env),
        header=env.text(
            "ZCACHE_REGION_HEADER",
            help_text="Header in which an edge of ZCACHE_TRUSTED_EDGES declares a client's region.",
        ).lower(),
        trusted_edges=tuple(
            _network("ZCACHE_TRUSTED_EDGES", word)
            for word in env.words(
                "ZCACHE_TRUSTED_EDGES",
                help_text="Networks of edges of one's own, whose word on a client's region and "
                "address counts.",
            )
        ),
        geoip=Path(geoip) if geoip else None,
    )


def _coordinates(env: Env) -> dict[str, tuple[float, float]]:
    name = "ZCACHE_REGIONS"
    found: dict[str, tuple[float, float]] = {}
    for word in env.words(
        name, help_text="Regions beyond the built-in ones: `name=latitude:longitude`, in degrees."
    ):
        match = re.fullmatch(r"([^=]+)=(-?\d{1,2}(?:\.\d+)?):(-?\d{1,3}(?:\.\d+)?)", word)
        if match is None:
            raise SettingError(name, f"must be like eu-home=48.1:11.6, not {word!r}.")
        found[_region(name, match[1])] = (float(match[2]), float(match[3]))
    return found


def _networks(env: Env) -> tuple[tuple[Network, str], ...]:
    """Read the map; its narrowest networks come first."""
    name = "ZCACHE_NETWORKS"
    found = []
    for word in env.words(name, help_text="Clients' regions by network: `203.0.113.0/24=us-east`."):
        network, separator, region = word.partition("=")
        if not separator:
            raise SettingError(name, f"must be like 203.0.113.0/24=us-east, not {word!r}.")
        found.append((_network(name, network), _region(name, region)))
    return tuple(sorted(found, key=lambda row: row[0].prefixlen, reverse=True))


def _network(name: str, text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        raise SettingError(name, f"holds no network: {text!r}.") from None


def _region(name: str, text: str) -> str:
    region = text.strip()
    if not REGION.fullmatch(region):
        raise SettingError(name, f"holds no region's name: {region!r}.")
    return region
