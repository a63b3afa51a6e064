"""`up`: the whole platform on one machine, from an empty folder to a first query.

Starts the clusters, brings the schema up to date, starts the servers, prints the closing banner,
and keeps all of it running until Ctrl-C.
"""

import argparse
import asyncio
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from common.machine.errors import StartError
from common.machine.files import Lock
from common.machine.folders import Folders, data_dir_from, make_folders
from common.machine.ports import PortReservations, check_port, port_from
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
from operations.embedded.banner import CacheAddress, PlatformAddress, show_banner
from operations.embedded.platform_processes import PROJECT, Recipe, cache_recipe, platform_recipe
from operations.embedded.postgres.cluster import CONTROL, TENANTS, LocalCluster
from operations.embedded.supervisor.known_processes import SERVER_STOP_STEPS
from operations.embedded.supervisor.launch import Launch
from operations.embedded.supervisor.process import (
    DEFAULT_STOP,
    Process,
    RestartPolicy,
    ServerProcess,
    call_probe,
    http_probe,
)
from operations.embedded.supervisor.supervision import DEFAULT_RESTART_POLICY, Supervisor

HELP: Final = """\
Run the whole platform until Ctrl-C: two embedded PostgreSQL clusters, the migrations, the web
server, the task worker, and the edge cache: its brain and two workers. The data stays for the next
start.

Settings, all from the environment:
  PORT              port of the web server (8000)
  ZBRAIN_PORT, ZBRAIN_S3_PORT, ZBRAIN_WORKER_PORT
                    ports of the brain: internal API (8081), object API (9000), workers' API (8083)
  ZFEATURES         `none` leaves the edge cache out
  ZDATA_DIR         folder of the data and the first secrets (./var)
  DATABASE_URL      a PostgreSQL of your own for the control plane; none is started then
  ZSQL_CLUSTER_URL  a PostgreSQL of your own for tenants; none is started then
  ZPG_BINDIR        bin folder of another PostgreSQL, 15 to 18
"""
DEFAULT_PORT: Final = 8000
INTERRUPTED: Final = 130
CLUSTERS: Final = (("DATABASE_URL", CONTROL), ("ZSQL_CLUSTER_URL", TENANTS))
# Lines that PostgreSQL logs at every normal start and stop.
ROUTINE: Final = re.compile(
    r"LOG: +(starting PostgreSQL|listening on|database system (was shut down|is ready|is shut)"
    r"|received .* shutdown request|aborting any active|shutting down|background worker .* exited)"
)


def main(argv: Sequence[str]) -> int:
    """Run `up` with the platform's own processes; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="up", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args(argv)
    try:
        port = port_from(os.environ, "PORT", default=DEFAULT_PORT)
        return run(os.environ, platform_recipe(port, cache_recipe(os.environ)))
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
    lock = Lock(folders.data_dir / "lock")
    lock.take(
        refusal=f"Zonal already runs with the data in {folders.data_dir} ({{holder}}). Stop it "
        "first, or choose another folder with the setting ZDATA_DIR."
    )
    try:
        with PortReservations() as reservations:
            return asyncio.run(_supervise(environ, recipe, folders, restart_policy, reservations))
    finally:
        lock.release()


async def _supervise(
    environ: Mapping[str, str],
    recipe: Recipe,
    folders: Folders,
    restart_policy: RestartPolicy,
    reservations: PortReservations,
) -> int:
    supervisor = Supervisor(folders.data_dir, restart_policy=restart_policy)
    if supervisor.end_leftovers():
        say("Ended processes left by an earlier start.")
    cache = recipe.cache
    ports = [(server.port, server.port_setting) for server in recipe.servers if server.port]
    for port, setting in [*ports, *(cache.ports() if cache else [])]:
        check_port(port, setting)
    if cache is not None:
        # The web server probes the brain once, when it starts; workers can start at the same time.
        brain, *workers = cache.servers(folders.data_dir, reservations)
        web, *others = recipe.servers
        recipe = replace(recipe, servers=(brain, web, *workers, *others))
    start = _Start(environ, recipe, folders)
    try:
        return await supervisor.run(start.run)
    finally:
        start.release()


@dataclass(frozen=True)
class _SetupResult:
    """Output of setup. token: for development; access: to the object API; both may be empty."""

    token: str
    access: Mapping[str, str]


@dataclass
class _Start:
    """The steps of one start, in order."""

    environ: Mapping[str, str]
    recipe: Recipe
    folders: Folders

    def __post_init__(self) -> None:
        needed = [spec for setting, spec in CLUSTERS if not is_given(setting, self.environ)]
        self._clusters: list[LocalCluster] = []
        if needed:
            binaries = find_binaries(
                self.environ,
                self.folders.runtime_dir,
                production=is_production(self.environ),
            )
            say(f"PostgreSQL {'.'.join(map(str, binaries.version))} from {binaries.bindir}")
            self._clusters = [LocalCluster(spec, self.folders, binaries) for spec in needed]
        self._settings: dict[str, str] = {}
        self._hidden: dict[str, str] = {}

    async def run(self, supervisor: Supervisor) -> None:
        """Run all steps, up to the banner."""
        await self._start_clusters(supervisor)
        self._save_settings()
        say("Bringing the schema up to date.")
        setup = await self._bootstrap(supervisor)
        say("Starting " + ", ".join(server.name for server in self.recipe.servers) + ".")
        # In sequence: on two cores, starting all concurrently delays the first one.
        for step in _steps(self.recipe.servers):
            await supervisor.start([self._process(server) for server in step])
        web = next(server for server in self.recipe.servers if server.port_setting == "PORT")
        show_banner(
            PlatformAddress(
                base_url=f"http://127.0.0.1:{web.port}", token=setup.token, cache=self._cache(setup)
            ),
            self.recipe.pages,
            folders=[self.folders.data_dir, *(c.home.parent for c in self._clusters)],
        )

    def release(self) -> None:
        """Release the clusters, after all processes have stopped."""
        for cluster in self._clusters:
            cluster.release()

    async def _start_clusters(self, supervisor: Supervisor) -> None:
        for cluster in self._clusters:
            done = "Starting" if cluster.data.exists() else "Creating"
            say(f"{done} the {cluster.spec.name} database in {cluster.home}")
        await asyncio.gather(*(asyncio.to_thread(c.prepare) for c in self._clusters))
        await supervisor.start([_cluster_process(cluster) for cluster in self._clusters])
        await asyncio.gather(*(asyncio.to_thread(c.configure_roles) for c in self._clusters))

    def _save_settings(self) -> None:
        """Write runtime.env before any process reads it, so that a second terminal works too."""
        known = load_runtime_env(self.folders.data_dir)
        running = {cluster.spec.name: cluster.url for cluster in self._clusters}
        for setting, spec in CLUSTERS:
            known.pop(setting, None)
            if spec.name in running:
                known[setting] = running[spec.name]
        if self.recipe.cache is not None:
            known |= self.recipe.cache.settings
        self._settings = complete_secrets(known, self.environ)
        self._hidden = hidden_secrets(known, self.environ)
        save_runtime_env(self.folders.data_dir, self._settings | self._hidden)

    async def _bootstrap(self, supervisor: Supervisor) -> _SetupResult:
        """Migrate, and create what a development installation needs."""
        printed = await supervisor.complete("setup", self._launch(self.recipe.bootstrap))
        try:
            output = json.loads(printed.strip().rpartition("\n")[2])
            org_id = output.get("org_id")
            result = _SetupResult(
                token=str(output.get("dev_token") or ""), access=output.get("cache") or {}
            )
        except (ValueError, AttributeError):
            sentence = f"setup printed no JSON: {printed.strip()!r}"
            raise StartError(sentence) from None
        if org_id is not None and not is_given("ZAUTH_DEV_ORG_ID", self.environ):
            self._settings["ZAUTH_DEV_ORG_ID"] = str(org_id)
            save_runtime_env(self.folders.data_dir, self._settings | self._hidden)
        return result

    def _cache(self, setup: _SetupResult) -> CacheAddress | None:
        cache = self.recipe.cache
        if cache is None:
            return None
        return CacheAddress(
            s3_url=cache.s3_url,
            internal_port=cache.internal_port,
            workers_port=cache.workers_port,
            bucket=setup.access.get("bucket", ""),
            key_id=setup.access.get("access_key_id", ""),
            secret=setup.access.get("secret_access_key", ""),
        )

    def _launch(self, command: tuple[str, ...]) -> Launch:
        environment = {
            **self.environ,
            **self._settings,
            "ZDATA_DIR": str(self.folders.data_dir),
            "ZSTATIC_ROOT": self.environ.get("ZSTATIC_ROOT")
            or str(self.folders.data_dir / "static"),
            "PYTHONUNBUFFERED": "1",
            # The banner shows the development token, so the web server does not.
            "ZONAL_SUPERVISED": "1",
        }
        return Launch(command=command, env=environment, cwd=PROJECT)

    def _process(self, server: ServerProcess) -> Process:
        probe = http_probe(server.port, server.ready_path) if server.port else None
        polite, last = DEFAULT_STOP
        return Process(
            name=server.name,
            launch=self._launch(server.command),
            needs=server.needs,
            probe=probe,
            stop_steps=((polite[0], server.stop_timeout_s), last),
        )


def _steps(servers: Sequence[ServerProcess]) -> list[list[ServerProcess]]:
    """Return groups of servers that start together, in order."""
    steps: list[list[ServerProcess]] = []
    for server in servers:
        if server.joins and steps:
            steps[-1].append(server)
        else:
            steps.append([server])
    return steps


def _cluster_process(cluster: LocalCluster) -> Process:
    return Process(
        name=cluster.spec.name,
        launch=cluster.launch(),
        probe=call_probe(cluster.is_ready),
        before_start=cluster.recover,
        stop_steps=SERVER_STOP_STEPS,
        second_interrupt_signal=signal.SIGQUIT,
        # LocalCluster.recover finds its own orphans, and stops them cleanly.
        is_tracked=False,
        ignored_lines=ROUTINE,
    )
