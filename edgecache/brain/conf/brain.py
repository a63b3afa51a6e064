"""Settings of the brain: its listeners, its budgets, where it and its clients are.

``TABLES`` has all settings that a brain reads, those of the other modules here as well.
"""

import ipaddress
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from common.conf import postgresql_url
from common.settings.env import Env, SettingError
from common.settings.table import (
    POSTGRESQL_SCHEMES,
    flag,
    integer,
    load,
    secret_list,
    text,
    url,
    words,
)
from edgecache.brain.conf.operators import AuditSettings, CreditLimits
from edgecache.brain.conf.processes import MIN_CONNECTIONS, ProcessSettings
from edgecache.brain.conf.stores import (
    ManagedStores,
    StoreSettings,
    read_stores,
)
from edgecache.http.addresses import parse_address
from edgecache.protocol.names import LABEL

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SECRET_CHARS: Final = 32
_URL: Final = re.compile(r"https?://[^\s/?#@]+")
# Names of containers may have underscores.
_HOST: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
LOCAL: Final = "localhost"


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError("must be an IP address.") from None


def _existing_file(text: str) -> Path | None:
    try:
        is_file = not text or Path(text).is_file()
    except OSError:
        # A key in place of its file's name is too long for one.
        is_file = False
    if not is_file:
        raise ValueError("names a file that does not exist.")
    return Path(text) if text else None


def api_url(text: str) -> str:
    """Return the URL of an API without a slash at its end; '' stays.

    Raises ValueError for anything with a path, a query or a user.
    """
    url = text.rstrip("/")
    try:
        is_valid = _URL.fullmatch(url) is not None and bool(urlsplit(url).hostname)
    except ValueError:
        is_valid = False
    if url and not is_valid:
        raise ValueError("must be like http://127.0.0.1:8081.")
    return url


def _domains(words: tuple[str, ...]) -> tuple[str, ...]:
    domains = tuple(word.lower().rstrip(".") for word in words)
    for domain in domains:
        if not _HOST.fullmatch(domain):
            raise ValueError("must be host names like s3.example.com.")
    return domains


def _region(text: str) -> str:
    region = text.strip()
    if not LABEL.fullmatch(region):
        raise ValueError("has an invalid region name.")
    return region


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        raise ValueError("has an invalid network.") from None


def _coordinates(words: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for word in words:
        match = re.fullmatch(r"([^=]+)=(-?\d{1,2}(?:\.\d+)?):(-?\d{1,3}(?:\.\d+)?)", word)
        if match is None:
            raise ValueError("must be like eu-home=48.1:11.6.")
        found[_region(match[1])] = (float(match[2]), float(match[3]))
    return found


def _networks(words: tuple[str, ...]) -> tuple[tuple[Network, str], ...]:
    """Return networks with their region, the narrowest first."""
    found = []
    for word in words:
        network, separator, region = word.partition("=")
        if not separator:
            raise ValueError("must be like 203.0.113.0/24=us-east.")
        found.append((_network(network), _region(region)))
    return tuple(sorted(found, key=lambda row: row[0].prefixlen, reverse=True))


@dataclass(frozen=True, slots=True)
class Listener:
    """Where one of the brain's APIs listens; port_setting names what chooses another port."""

    address: str
    port: int
    port_setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Geography:
    """How a client's region is found, and how far regions are from one another.

    region: the brain's own, and that of a client that cannot be located.
    coordinates: latitude and longitude of regions that are not in the built-in table.
    networks: regions by network; the narrowest network applies.
    """

    region: str = text(
        "ZCACHE_REGION",
        "The brain's own region, and that of clients that cannot be located.",
        default="eu-central",
        parse=_region,
    )
    coordinates: dict[str, tuple[float, float]] = words(
        "ZCACHE_REGIONS",
        "Regions beyond the built-in ones: `name=latitude:longitude`, in degrees.",
        parse=_coordinates,
    )
    networks: tuple[tuple[Network, str], ...] = words(
        "ZCACHE_NETWORKS", "Clients' regions by network: `203.0.113.0/24=us-east`.", parse=_networks
    )
    header: str = text(
        "ZCACHE_REGION_HEADER",
        "Header in which one of ZTRUSTED_PROXIES declares a client's region.",
        parse=str.lower,
    )
    geoip: Path | None = text(
        "ZCACHE_GEOIP", "A MaxMind database (.mmdb) that locates clients.", parse=_existing_file
    )


def _listener(setting: str, api: str, default: int) -> Any:
    def parse(given: str) -> Listener:
        address, _, port = given.rpartition(":")
        if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 2**16:
            raise ValueError("must be a port from 1 to 65535, or like 0.0.0.0:8083.")
        host = re.sub(r"^\[(.*)\]$", r"\1", address) if address else "127.0.0.1"
        return Listener(_address(host), int(port), setting)

    sentence = f"Port of the brain's {api}, on 127.0.0.1, or address and port: `0.0.0.0:{default}`."
    return text(setting, sentence, default=str(default), parse=parse)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainSettings:
    """Settings of one brain.

    database_url: its own database, by default the control database.
    secrets: the present one, then those accepted until the last process has it.
    data_dir: files of one brain, or of several that share it.
    stores: the managed store, and the one to move to.
    s3_domains: host names of the object API, the host of s3_url and localhost among them; their
    subdomains are buckets.
    is_production: refuse private endpoints.
    """

    internal: Listener = _listener("ZBRAIN_PORT", "internal API", 8081)
    s3: Listener = _listener("ZBRAIN_S3_PORT", "object API", 9000)
    workers: Listener = _listener("ZBRAIN_WORKER_PORT", "workers' API", 8083)
    metrics_port: int = integer(
        "ZBRAIN_METRICS_PORT",
        "Port of this brain's `/metrics` on 127.0.0.1, one of its own where several brains have "
        "the same ports; 0: that of ZBRAIN_PORT.",
        default=0,
        maximum=65_535,
    )
    processes: ProcessSettings
    geography: Geography
    audits: AuditSettings
    credit_limits: CreditLimits
    data_dir: Path
    stores: tuple[StoreSettings, ...]
    is_production: bool
    workers_url: str = text(
        "ZBRAIN_WORKER_URL",
        "URL of the brain's workers' API that workers use.",
        shown="http://127.0.0.1:ZBRAIN_WORKER_PORT",
        parse=api_url,
    )
    tls_cert: Path | None = text(
        "ZBRAIN_TLS_CERT",
        "PEM file with the certificate of the workers' API.",
        parse=_existing_file,
    )
    tls_key: Path | None = text(
        "ZBRAIN_TLS_KEY", "PEM file with the private key of the workers' API.", parse=_existing_file
    )
    database_url: str = url(
        "ZBRAIN_DATABASE_URL",
        "A database for the brain alone; unset, it uses the control database.",
        schemes=POSTGRESQL_SCHEMES,
        parse=postgresql_url,
    )
    secrets: tuple[str, ...] = secret_list(
        "ZCACHE_BRAIN_SECRET",
        "Shared secret of the platform and the brain; the brain needs it to start. Earlier ones "
        "that a brain still accepts follow.",
        min_chars=SECRET_CHARS,
        aliases=("BRAIN_SECRET",),
    )
    s3_domains: tuple[str, ...] = words(
        "ZBRAIN_S3_DOMAINS",
        "Host names of the object API, beside localhost and that of ZCACHE_BRAIN_S3_URL. Their "
        "subdomains are buckets; at any other name a request is refused.",
        parse=_domains,
    )
    s3_url: str = text(
        "ZCACHE_BRAIN_S3_URL",
        "URL of the brain's object API.",
        shown="http://127.0.0.1:ZBRAIN_S3_PORT",
        parse=api_url,
    )
    is_encrypted: bool = flag(
        "ZBRAIN_ENCRYPTED_AT_REST",
        "Declares that everything an object is written to is encrypted: the store, the brains' and "
        "workers' disks, the database and the backups. Only then is "
        "`x-amz-server-side-encryption: AES256` accepted and shown.",
        default=False,
    )
    staging_bytes: int = integer(
        "ZBRAIN_STAGING_MIB",
        "Disk that unfinished uploads and fills of a machine's brains may take.",
        default=81_920,
        unit="MiB",
        minimum=16,
        maximum=2**30,
        scale=2**20,
    )
    replicas: int = integer(
        "ZCACHE_REPLICAS", "Copies of an object on workers.", default=2, minimum=1, maximum=8
    )
    heartbeat_s: int = integer(
        "ZCACHE_HEARTBEAT",
        "Time between two heartbeats of a worker.",
        default=10,
        unit="s",
        minimum=1,
        maximum=300,
    )

    def of_one(self) -> Self:
        """Return the settings of one of this machine's brains: its part of each limit."""
        count = self.processes.count
        return replace(
            self,
            staging_bytes=self.staging_bytes // count,
            credit_limits=replace(
                self.credit_limits,
                hits=self.credit_limits.hits // count,
                limit_bytes=self.credit_limits.limit_bytes // count,
            ),
            processes=replace(
                self.processes,
                connections=max(MIN_CONNECTIONS, self.processes.connections // count),
                index_bytes=self.processes.index_bytes // count,
                fills=-(-self.processes.fills // count),
            ),
        )

    @property
    def secret(self) -> str:
        """The present one of the secrets that are accepted; '' without any."""
        return self.secrets[0] if self.secrets else ""


TABLES: Final = (
    ProcessSettings,
    BrainSettings,
    Geography,
    AuditSettings,
    CreditLimits,
    ManagedStores,
)


def read(env: Env, *, data_dir: Path, database_url: str, is_production: bool) -> BrainSettings:
    """Return the brain's settings.

    database_url: the control database's.
    Raises SettingError.
    """
    chosen = load(
        BrainSettings,
        env,
        processes=load(ProcessSettings, env),
        geography=load(Geography, env),
        audits=load(AuditSettings, env),
        credit_limits=load(CreditLimits, env),
        data_dir=data_dir / "brain",
        stores=read_stores(env),
        is_production=is_production,
    )
    if bool(chosen.tls_cert) != bool(chosen.tls_key):
        missing = "ZBRAIN_TLS_KEY" if chosen.tls_cert else "ZBRAIN_TLS_CERT"
        raise SettingError(missing, "is missing: certificate and key belong together.")
    scheme = "https" if chosen.tls_cert else "http"
    s3_url = chosen.s3_url or f"http://127.0.0.1:{chosen.s3.port}"
    return replace(
        chosen,
        s3_url=s3_url,
        s3_domains=_own_domains(chosen.s3_domains, s3_url),
        workers_url=chosen.workers_url or f"{scheme}://127.0.0.1:{chosen.workers.port}",
        database_url=chosen.database_url or database_url,
    )


def _own_domains(domains: tuple[str, ...], s3_url: str) -> tuple[str, ...]:
    """Return the object API's host names: those that are set, its URL's and this machine's."""
    named = (urlsplit(s3_url).hostname or "").rstrip(".")
    own = () if parse_address(named) else (named,)
    return tuple(dict.fromkeys((*domains, *own, LOCAL)))
