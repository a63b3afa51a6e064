"""The processes that `up` runs in addition to the clusters; add new ones here."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from operations.embedded.recipe import CacheRecipe
from operations.embedded.supervisor.server import ServerProcess

PROJECT: Final = Path(__file__).resolve().parents[2]
MANAGE: Final = (sys.executable, str(PROJECT / "manage.py"))


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
