"""What `up` runs beside the clusters: the list to add a process to."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2]
MANAGE: Final = (sys.executable, str(PROJECT / "manage.py"))


@dataclass(frozen=True, kw_only=True)
class Server:
    """A process of the platform, started after the databases and stopped before them.

    ready_path: a path that answers 200 on `port` once it serves. port_setting: what the user
    sets to choose another port, looked at before anything starts.
    """

    name: str
    command: tuple[str, ...]
    port: int | None = None
    port_setting: str = ""
    ready_path: str = ""
    needs: tuple[str, ...] = ()
    stop_patience_s: float = 15.0


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Commands that make a platform out of two clusters.

    bootstrap: run to its end first; prints `{"org_id": …, "dev_token": …}` on standard output.
    pages: what the closing banner lists, label and path.
    """

    bootstrap: tuple[str, ...]
    servers: tuple[Server, ...]
    pages: tuple[tuple[str, str], ...]


def platform_recipe(web_port: int) -> Recipe:
    """List the platform's own processes."""
    return Recipe(
        bootstrap=(*MANAGE, "bootstrap", "--migrate", "--json"),
        servers=(
            Server(
                name="web",
                command=(
                    *(sys.executable, "-m", "gunicorn", "-c", "python:platform_site.gunicorn"),
                    "platform_site.wsgi:application",
                ),
                port=web_port,
                port_setting="PORT",
                ready_path="/readyz",
                needs=("control",),
            ),
            Server(
                name="worker",
                # A job that takes longer is left to the queue, which gives it out again.
                command=(
                    *(*MANAGE, "procrastinate", "worker", "--concurrency=4"),
                    *("--shutdown-graceful-timeout", "10"),
                ),
                needs=("control",),
            ),
        ),
        pages=(
            ("Console", "/console/"),
            ("API", "/v1/"),
            ("API docs", "/v1/docs"),
            ("Admin", "/admin/"),
        ),
    )
