"""`up`: the whole platform on one machine, from an empty folder to a first query.

Starts the clusters, brings the schema up to date, starts the servers, prints the closing banner,
and keeps all of it running until Ctrl-C.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from common.machine.errors import StartError
from common.machine.files import Lock
from common.machine.folders import Folders, data_dir_from, make_folders
from common.machine.ports import PortReservations, check_port
from common.machine.postgres_programs import find_binaries
from common.machine.terminal import say, warn
from common.settings.env import is_production
from common.settings.runtime_env import (
    complete_secrets,
    hidden_secrets,
    is_given,
    load_runtime_env,
    save_runtime_env,
)
from operations.embedded.banner import show_banner
from operations.embedded.platform_processes import PROJECT, Recipe, Server, platform_recipe
from operations.embedded.postgres.cluster import (
    CONTROL,
    SERVER_STOP,
    TENANTS,
    LocalCluster,
)
from operations.embedded.supervisor import (
    DEFAULT_RESTART_POLICY,
    LEFTOVER_STOP,
    MARK,
    Launch,
    Process,
    RestartPolicy,
    Supervisor,
    end,
    http_probe,
    marked_by,
)

HELP: Final = """\
Run the whole platform until Ctrl-C: two embedded PostgreSQL clusters, the migrations, the web
server, the task worker, and the edge cache: its brains and two workers. The data stays for the next
start.

Settings, all from the environment:
  PORT              port of the web server (8000)
  ZBRAIN_PORT, ZBRAIN_S3_PORT, ZBRAIN_WORKER_PORT
                    ports of the brains: internal API (8081), object API (9000), workers' API (8083)
  ZBRAIN_PROCESSES  number of brains: one for each processor, four at most
  ZFEATURES         `none` leaves the edge cache out
  ZDATA_DIR         folder of the data and the first secrets (./var)
  DATABASE_URL      a PostgreSQL of your own for the control plane; none is started then
  ZSQL_CLUSTER_URL  a PostgreSQL of your own for tenants; none is started then
  ZPG_BINDIR        bin folder of another PostgreSQL, 15 to 18
"""
INTERRUPTED: Final = 130
# Connections that wait while a process restarts.
BACKLOG: Final = 2048
CLUSTERS: Final = {"DATABASE_URL": CONTROL, "ZSQL_CLUSTER_URL": TENANTS}
# Lines that PostgreSQL logs at every normal start and stop.
ROUTINE: Final = re.compile(
    r"LOG: +(starting PostgreSQL|listening on|database system (was shut down|is ready|is shut)"
    r"|received .* shutdown request|aborting any active|shutting down|background worker .* exited)"
)


def main() -> int:
    """Run `up` with the platform's own processes; return the exit status."""
    try:
        return run(os.environ, platform_recipe(os.environ))
    except StartError as error:
        warn(str(error))
        return 1
    except OSError as error:
        warn(f"Zonal cannot start: {error}.")
        return 1
    except KeyboardInterrupt:
        # Before the supervisor handles signals: nothing runs yet.
        return INTERRUPTED


def run(
    environ: Mapping[str, str],
    recipe: Recipe,
    *,
    restart_policy: RestartPolicy = DEFAULT_RESTART_POLICY,
) -> int:
    """Run a recipe until a signal; return the exit status. Call it in the main thread.

    Raises StartError for problems found before the first process starts: another `up` with the
    same data, a port in use, no usable PostgreSQL.
    """
    folders = make_folders(data_dir_from(environ))
    with contextlib.ExitStack() as stack:
        lock = Lock(folders.data_dir / "lock")
        lock.take(
            refusal=f"Zonal already runs with the data in {folders.data_dir} ({{holder}}). Stop it "
            "first, or choose another folder with the setting ZDATA_DIR."
        )
        stack.callback(lock.release)
        if marked_by(folders.data_dir):
            end(lambda: marked_by(folders.data_dir), LEFTOVER_STOP)
            say("Ended processes left by an earlier start.")
        for port, setting in recipe.ports():
            check_port(port, setting)
        clusters = _clusters(environ, folders)
        for cluster in clusters:
            stack.callback(cluster.release)
        reservations = stack.enter_context(PortReservations())
        start = _Start(environ, recipe, folders, clusters, reservations)
        return asyncio.run(_supervise(start, restart_policy))


async def _supervise(start: "_Start", restart_policy: RestartPolicy) -> int:
    return await Supervisor(restart_policy=restart_policy).run(start.run)


def _clusters(environ: Mapping[str, str], folders: Folders) -> list[LocalCluster]:
    """Return the clusters that the environment does not replace by others."""
    needed = [spec for setting, spec in CLUSTERS.items() if not is_given(setting, environ)]
    if not needed:
        return []
    binaries = find_binaries(environ, folders.runtime_dir, production=is_production(environ))
    say(f"PostgreSQL {'.'.join(map(str, binaries.version))} from {binaries.bindir}")
    return [LocalCluster(spec, folders, binaries) for spec in needed]


class _Start:
    """The steps of one start, in order."""

    def __init__(
        self,
        environ: Mapping[str, str],
        recipe: Recipe,
        folders: Folders,
        clusters: Sequence[LocalCluster],
        reservations: PortReservations,
    ) -> None:
        self._environ = environ
        self._recipe = recipe
        self._data_dir = folders.data_dir
        self._clusters = clusters
        self._groups = recipe.groups(folders.data_dir, reservations)
        # Those of servers that are started on the same ports, by port.
        self._sockets: dict[int, socket.socket] = {}
        # For every process, and what the environment hides of runtime.env.
        self._settings: dict[str, str] = {}
        self._hidden: dict[str, str] = {}

    async def run(self, supervisor: Supervisor) -> None:
        """Run all steps, up to the banner."""
        for cluster in self._clusters:
            done = "Starting" if cluster.data.exists() else "Creating"
            say(f"{done} the {cluster.spec.name} database in {cluster.home}")
        await asyncio.gather(*(asyncio.to_thread(each.prepare) for each in self._clusters))
        await supervisor.start(map(_cluster_process, self._clusters))
        await asyncio.gather(*(asyncio.to_thread(each.configure_roles) for each in self._clusters))
        self._choose_settings()
        say("Bringing the schema up to date.")
        made = await self._bootstrap(supervisor)
        names = ", ".join(server.name for group in self._groups for server in group)
        say(f"Starting {names}.")
        for group in self._groups:
            await supervisor.start(map(self._process, group))
        folders = [self._data_dir, *(each.home.parent for each in self._clusters)]
        show_banner(self._recipe, made, folders=folders)

    def _choose_settings(self) -> None:
        """Write runtime.env before any process reads it, so that a second terminal works too."""
        known = load_runtime_env(self._data_dir)
        urls = {cluster.spec: cluster.url for cluster in self._clusters}
        for setting, spec in CLUSTERS.items():
            known.pop(setting, None)
            if spec in urls:
                known[setting] = urls[spec]
        if self._recipe.cache is not None:
            known |= self._recipe.cache.settings
        self._settings = complete_secrets(known, self._environ)
        self._hidden = hidden_secrets(known, self._environ)
        save_runtime_env(self._data_dir, self._settings | self._hidden)

    async def _bootstrap(self, supervisor: Supervisor) -> dict[str, Any]:
        """Migrate, and create what a development installation needs."""
        printed = await supervisor.complete("setup", self._launch(self._recipe.bootstrap))
        try:
            made: dict[str, Any] = json.loads(printed.strip().rpartition("\n")[2])
            org_id = made.get("org_id")
        except (ValueError, AttributeError):
            sentence = f"setup printed no JSON: {printed.strip()!r}"
            raise StartError(sentence) from None
        if org_id is not None and not is_given("ZAUTH_DEV_ORG_ID", self._environ):
            self._settings["ZAUTH_DEV_ORG_ID"] = str(org_id)
            save_runtime_env(self._data_dir, self._settings | self._hidden)
        return made

    def _launch(
        self, command: tuple[str, ...], variables: Mapping[str, str] = MappingProxyType({})
    ) -> Launch:
        static = self._environ.get("ZSTATIC_ROOT") or str(self._data_dir / "static")
        environment = {
            **self._environ,
            **self._settings,
            "ZDATA_DIR": str(self._data_dir),
            "ZSTATIC_ROOT": static,
            "PYTHONUNBUFFERED": "1",
            # The banner shows the development token, so the web server does not.
            MARK: str(self._data_dir.resolve()),
            **variables,
        }
        return Launch(command=command, env=environment, cwd=PROJECT)

    def _process(self, server: Server) -> Process:
        launch = self._launch(server.command, server.variables)
        is_alive = http_probe(server.port or 0, server.alive_path, any_status=True)
        return Process(
            name=server.name,
            launch=replace(launch, sockets=tuple(map(self._socket, server.sockets))),
            needs=server.needs,
            probe=http_probe(server.port, server.ready_path) if server.port else None,
            is_alive=is_alive if server.alive_path else None,
        )

    def _socket(self, of: tuple[int, str]) -> socket.socket:
        """Return the listening socket of a port, the same each time. Raises PortTakenError."""
        port, setting = of
        if port not in self._sockets:
            check_port(port, setting)
            self._sockets[port] = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
        return self._sockets[port]


def _cluster_process(cluster: LocalCluster) -> Process:
    return Process(
        name=cluster.spec.name,
        launch=cluster.launch(),
        probe=cluster.is_ready,
        before_start=cluster.recover,
        stop_steps=SERVER_STOP,
        second_interrupt_signal=signal.SIGQUIT,
        ignored_lines=ROUTINE,
    )
