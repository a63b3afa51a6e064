"""What `make run` starts beside the clusters: web, worker, brains, a node in each region.

Add new processes here.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from common.machine.errors import StartError
from common.machine.ports import PortReservations, port_from
from edgecache import local_nodes
from edgecache.local_nodes import LocalNode
from edgecache.runtime.resource_limits import processors

# Each has its own directory and caches: more do not help a usual machine.
MAX_DEFAULT_BRAINS: Final = 4
MAX_BRAINS: Final = 64
METRICS_PORTS: Final = 100
REGIONS: Final = ("eu-central", "us-east")
PROJECT: Final = Path(__file__).resolve().parents[2]
MANAGE: Final = (sys.executable, str(PROJECT / "manage.py"))


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server process, started after the databases and stopped before them.

    ready_path: a path on `port` that answers 200 once the server is ready. alive_path: one that it
    answers with any status, unless it hangs.
    needs: processes that it cannot start without. variables: of its environment.
    sockets: ports, with their settings, on which the supervisor listens for the server.
    """

    name: str
    command: tuple[str, ...]
    port: int | None = None
    ready_path: str = ""
    alive_path: str = ""
    needs: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    sockets: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CacheRecipe:
    """The brains' ports, which are the same for all of them, and their number.

    metrics_port: from which each gets one of its own, if there are several.
    """

    internal_port: int
    s3_port: int
    workers_port: int
    metrics_port: int
    brain_count: int

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings for `runtime.env`, by which other commands find this brain."""
        ports = {setting: str(port) for port, setting in self.ports()}
        url = f"http://127.0.0.1:{self.internal_port}"
        return {**ports, "ZCACHE_BRAIN_URL": url, "ZCACHE_BRAIN_S3_URL": self.s3_url}

    @property
    def s3_url(self) -> str:
        """The URL of the object API."""
        return f"http://127.0.0.1:{self.s3_port}"

    def ports(self) -> list[tuple[int, str]]:
        """Return the ports to check before anything starts, with their settings."""
        return [
            (self.internal_port, "ZBRAIN_PORT"),
            (self.s3_port, "ZBRAIN_S3_PORT"),
            (self.workers_port, "ZBRAIN_WORKER_PORT"),
        ]

    def brains(self, reservations: PortReservations) -> list[Server]:
        """Return the brains; of several each answers for itself on a port of its own."""
        if self.brain_count == 1:
            return [self._brain("brain", self.internal_port, {})]
        ports = range(self.metrics_port, self.metrics_port + METRICS_PORTS)
        made = []
        for number in range(1, self.brain_count + 1):
            port = reservations.take_first(ports)
            name = "brain" if number == 1 else f"brain {number}"
            made.append(self._brain(name, port, {"ZBRAIN_METRICS_PORT": str(port)}))
        return made

    def _brain(self, name: str, port: int, variables: Mapping[str, str]) -> Server:
        return Server(
            name=name,
            command=(sys.executable, "-m", "edgecache.brain"),
            port=port,
            ready_path="/health",
            alive_path="/health",
            needs=("control",),
            variables={"ZBRAIN_PROCESSES": str(self.brain_count), **variables},
            sockets=tuple(self.ports()),
        )

    def workers(self, data_dir: Path, reservations: PortReservations) -> list[Server]:
        """Return the workers, creating missing identities."""
        nodes = local_nodes.prepare(data_dir, REGIONS, reservations)
        return [self._worker(node) for node in nodes]

    def _worker(self, node: LocalNode) -> Server:
        options = {
            "--brain": f"http://127.0.0.1:{self.workers_port}",
            "--node-id": str(node.node_id),
            "--secret-file": str(node.secret_file),
            "--dir": str(node.folder / "store"),
            "--capacity": str(node.capacity_bytes),
            "--region": node.region,
            "--listen": f"127.0.0.1:{node.port}",
            "--endpoint": node.endpoint,
        }
        words = (word for option in options.items() for word in option)
        return Server(
            name=node.region,
            command=(sys.executable, "-m", "edgecache.worker", *words),
            port=node.port,
            ready_path="/healthz",
            needs=("brain",),
        )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The commands of a platform on two clusters.

    bootstrap: completes first; prints `{"org_id": …, "dev_token": …, "cache": …}` to standard
    output. pages: label and path of the banner's links. cache: None without the edge cache.
    """

    bootstrap: tuple[str, ...]
    web: Server
    worker: Server
    pages: tuple[tuple[str, str], ...]
    cache: CacheRecipe | None = None

    def ports(self) -> list[tuple[int, str]]:
        """Return the ports to check before anything starts, with their settings."""
        return [(self.web.port or 0, "PORT"), *(self.cache.ports() if self.cache else [])]

    def groups(self, data_dir: Path, reservations: PortReservations) -> list[list[Server]]:
        """Return the servers that start together, in order.

        On two cores, starting all concurrently delays the first one. The web server probes the
        brain once, when it starts.
        """
        if self.cache is None:
            return [[self.web], [self.worker]]
        nodes = self.cache.workers(data_dir, reservations)
        return [self.cache.brains(reservations), [self.web, *nodes], [self.worker]]


def platform_recipe(environ: Mapping[str, str]) -> Recipe:
    """Return the platform's own processes. Raises StartError for a port that is none."""
    gunicorn = "-m gunicorn -c python:platform_site.gunicorn platform_site.wsgi:application"
    # A job that takes longer than the time-out is stopped, and the queue runs it again.
    worker = "procrastinate worker --concurrency=4 --shutdown-graceful-timeout 10"
    return Recipe(
        bootstrap=(*MANAGE, "bootstrap", "--migrate", "--static", "--json"),
        web=Server(
            name="web",
            command=(sys.executable, *gunicorn.split()),
            port=_web_port(environ),
            ready_path="/readyz",
            needs=("control",),
        ),
        worker=Server(name="worker", command=(*MANAGE, *worker.split()), needs=("control",)),
        pages=(
            ("Console", "/console/"),
            ("API", "/v1/"),
            ("API docs", "/v1/docs"),
            ("Admin", "/admin/"),
            ("Mails", "/inbox"),
        ),
        cache=cache_recipe(environ),
    )


def _web_port(environ: Mapping[str, str]) -> int:
    """Return the web server's port. Raises StartError if ZBIND has another one than PORT."""
    port = port_from(environ, "PORT", default=8000)
    bind = environ.get("ZBIND", "").strip()
    if bind and not bind.endswith(f":{port}"):
        sentence = f"ZBIND ({bind}) has another port than PORT ({port}). Set PORT alone."
        raise StartError(sentence)
    return port


def cache_recipe(environ: Mapping[str, str]) -> CacheRecipe | None:
    """Return the cache's recipe, None if ZFEATURES excludes it. Raises StartError."""
    features = environ.get("ZFEATURES", "").strip() or "cache"
    if "cache" not in [word.strip() for word in features.split(",")]:
        return None
    return CacheRecipe(
        internal_port=port_from(environ, "ZBRAIN_PORT", default=8081),
        s3_port=port_from(environ, "ZBRAIN_S3_PORT", default=9000),
        workers_port=port_from(environ, "ZBRAIN_WORKER_PORT", default=8083),
        metrics_port=port_from(environ, "ZBRAIN_METRICS_PORT", default=8401),
        brain_count=_brain_count(environ),
    )


def _brain_count(environ: Mapping[str, str]) -> int:
    text = environ.get("ZBRAIN_PROCESSES", "").strip() or "0"
    if not re.fullmatch(r"[0-9]{1,2}", text) or int(text) > MAX_BRAINS:
        sentence = f"ZBRAIN_PROCESSES must be from 0 to {MAX_BRAINS}."
        raise StartError(sentence)
    return int(text) or min(processors(), MAX_DEFAULT_BRAINS)
