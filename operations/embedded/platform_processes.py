"""What `make run` starts beside the clusters: web, worker, brain, a node in each region.

Add new processes here.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.machine.ports import PortReservations, port_from
from edgecache import local_nodes
from edgecache.local_nodes import LocalNode
from operations.embedded.supervisor.process import ServerProcess

REGIONS: Final = ("eu-central", "us-east")
PROJECT: Final = Path(__file__).resolve().parents[2]
MANAGE: Final = (sys.executable, str(PROJECT / "manage.py"))


@dataclass(frozen=True, kw_only=True)
class CacheRecipe:
    """The brain's ports, read from the environment."""

    internal_port: int
    s3_port: int
    workers_port: int

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings for `runtime.env`, by which other commands find this brain."""
        return {
            "ZBRAIN_PORT": str(self.internal_port),
            "ZBRAIN_S3_PORT": str(self.s3_port),
            "ZBRAIN_WORKER_PORT": str(self.workers_port),
            "ZCACHE_BRAIN_URL": f"http://127.0.0.1:{self.internal_port}",
            "ZCACHE_BRAIN_S3_URL": self.s3_url,
        }

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

    def servers(self, data_dir: Path, reservations: PortReservations) -> list[ServerProcess]:
        """Return the brain and the workers, creating missing identities."""
        brain = ServerProcess(
            name="brain",
            command=(sys.executable, "-m", "edgecache.brain"),
            port=self.internal_port,
            port_setting="ZBRAIN_PORT",
            ready_path="/health",
            needs=("control",),
        )
        nodes = local_nodes.prepare(data_dir, REGIONS, reservations)
        return [brain, *(self._worker(node) for node in nodes)]

    def _worker(self, node: LocalNode) -> ServerProcess:
        return ServerProcess(
            name=node.region,
            command=(
                sys.executable,
                "-m",
                "edgecache.worker",
                "--brain",
                f"http://127.0.0.1:{self.workers_port}",
                "--node-id",
                str(node.node_id),
                "--secret-file",
                str(node.secret_file),
                "--dir",
                str(node.folder / "store"),
                "--capacity",
                str(node.capacity_bytes),
                "--region",
                node.region,
                "--listen",
                f"127.0.0.1:{node.port}",
                "--endpoint",
                node.endpoint,
            ),
            port=node.port,
            ready_path="/healthz",
            needs=("brain",),
            joins=True,
        )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The commands of a platform on two clusters.

    bootstrap: completes first; prints `{"org_id": …, "dev_token": …, "cache": …}` to standard
    output. pages: label and path of the banner's links. cache: None without the edge cache.
    """

    bootstrap: tuple[str, ...]
    servers: tuple[ServerProcess, ...]
    pages: tuple[tuple[str, str], ...]
    cache: CacheRecipe | None = None


def platform_recipe(web_port: int, cache: CacheRecipe | None) -> Recipe:
    """List the platform's own processes."""
    return Recipe(
        bootstrap=(*MANAGE, "bootstrap", "--migrate", "--static", "--json"),
        servers=(
            ServerProcess(
                name="web",
                command=(
                    sys.executable,
                    "-m",
                    "gunicorn",
                    "-c",
                    "python:platform_site.gunicorn",
                    "platform_site.wsgi:application",
                ),
                port=web_port,
                port_setting="PORT",
                ready_path="/readyz",
                needs=("control",),
            ),
            ServerProcess(
                name="worker",
                # A job that takes longer is stopped, and the queue runs it again.
                command=(
                    *MANAGE,
                    "procrastinate",
                    "worker",
                    "--concurrency=4",
                    "--shutdown-graceful-timeout",
                    "10",
                ),
                needs=("control",),
            ),
        ),
        pages=(
            ("Console", "/console/"),
            ("API", "/v1/"),
            ("API docs", "/v1/docs"),
            ("Admin", "/admin/"),
            ("Mails", "/inbox"),
        ),
        cache=cache,
    )


def cache_recipe(environ: Mapping[str, str]) -> CacheRecipe | None:
    """Return the cache's recipe, None if ZFEATURES excludes it. Raises StartError."""
    features = environ.get("ZFEATURES", "").strip() or "cache"
    if "cache" not in [word.strip() for word in features.split(",")]:
        return None
    return CacheRecipe(
        internal_port=port_from(environ, "ZBRAIN_PORT", default=8081),
        s3_port=port_from(environ, "ZBRAIN_S3_PORT", default=9000),
        workers_port=port_from(environ, "ZBRAIN_WORKER_PORT", default=8083),
    )
