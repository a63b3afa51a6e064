"""A whole installation as `make run` starts it, with data of its own."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from common.settings.runtime_env import load_runtime_env
from tests.operations.embedded.support import environment
from tests.ports import free_port
from tests.processes import children_of
from tests.waiting import wait_until

ROOT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 300.0
STOP_S: Final = 120.0
COMMAND_S: Final = 300
MIB: Final = 2**20
# A process's name by a word of its command line; the clusters by their folder.
NAMES: Final = {
    "gunicorn": "web",
    "procrastinate": "task worker",
    "edgecache.brain": "brain",
    "edgecache.worker": "cache worker",
    "/control/": "control database",
    "/tenants/": "tenants' cluster",
}
# What is killed; a web process is a child of the web server.
KILLED: Final = (*NAMES.values(), "web process")


@dataclass
class Sample:
    """Memory in MiB of all processes of a name, and connections of each cluster."""

    values: dict[str, float]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.0f}" for name, value in self.values.items())


class Installation:
    """Web, task worker, brains, cache workers and both clusters, under `up`."""

    def __init__(self) -> None:
        self.port, self.s3_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.s3_url = f"http://127.0.0.1:{self.s3_port}"

    def __enter__(self) -> "Installation":
        """Start it and wait until all runs."""
        self._folder = Path(tempfile.mkdtemp(prefix="zonal-soak-"))
        self._folder.chmod(0o755)
        self._environment = environment(
            ZDATA_DIR=str(self._folder / "var"),
            PORT=str(self.port),
            ZBRAIN_PORT=str(free_port()),
            ZBRAIN_S3_PORT=str(self.s3_port),
            ZBRAIN_WORKER_PORT=str(free_port()),
            ZBRAIN_METRICS_PORT=str(free_port()),
        )
        self._log = self._folder / "up.log"
        with self._log.open("wb") as output:
            self._up = subprocess.Popen(
                [sys.executable, "-m", "operations.embedded", "up"],
                env=self._environment,
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        try:
            wait_until(self._is_up, timeout_s=START_S)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop it; keep its log if something failed."""
        self._up.terminate()
        try:
            status = self._up.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._up.kill()
            status = self._up.wait()
        if status or exc[0] is not None:
            print(f"`up` ended with {status}: {self._log}", flush=True)
        else:
            shutil.rmtree(self._folder, ignore_errors=True)

    def manage(self, *words: str) -> dict[str, Any]:
        """Run a command with --json; return what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words, "--json"],
            env=self._environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout[-500:]} {done.stderr[-2000:]}")
        printed: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
        return printed

    def kill_one(self, chance: random.Random) -> str:
        """Kill a process, as the kernel does when memory ends; return its name."""
        name = chance.choice(KILLED)
        processes = self._processes()
        if name == "web process":
            pids = [child for pid in processes["web"] for child in children_of(pid)]
        else:
            pids = processes[name]
        os.kill(chance.choice(pids), signal.SIGKILL)
        return name

    def wait_until_well(self, timeout_s: float) -> float:
        """Wait until every process runs and answers; return how long that took."""
        began = time.monotonic()
        # The supervisor needs a moment to see it.
        time.sleep(1.0)
        wait_until(self._is_well, timeout_s=timeout_s)
        return time.monotonic() - began

    def sample(self) -> Sample:
        """Measure memory and connections."""
        memory = Counter[str]()
        for name, pids in self._processes().items():
            for pid in pids:
                memory[name] += _memory_of(pid)
        values = {f"{name} (MiB)": size / MIB for name, size in memory.items()}
        settings = load_runtime_env(self._folder / "var")
        for name in ("DATABASE_URL", "ZSQL_CLUSTER_URL"):
            with suppress(psycopg.OperationalError):
                values[f"connections of {name}"] = _connections(settings[name])
        return Sample(values)

    def _processes(self) -> dict[str, list[int]]:
        """Return the running children of the supervisor, by name."""
        found: dict[str, list[int]] = {name: [] for name in NAMES.values()}
        for pid in children_of(self._up.pid):
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_text()
                for word, name in NAMES.items():
                    if word in command:
                        found[name].append(pid)
                        break
        return found

    def _is_up(self) -> bool:
        if self._up.poll() is not None:
            raise RuntimeError(self._log.read_text()[-5000:])
        return "Ctrl-C stops everything" in self._log.read_text()

    def _is_well(self) -> bool:
        paths = (f"{self.url}/readyz", f"{self.s3_url}/-/readyz")
        return all(self._processes().values()) and all(map(_is_ready, paths))


def _is_ready(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - http, on loopback
    except OSError:
        return False
    return True


def _memory_of(pid: int) -> int:
    """Return the proportional set size in bytes of a process and its children."""
    with suppress(OSError, ValueError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        own = int(text.partition("\nPss:")[2].split()[0]) * 1024
        return own + sum(map(_memory_of, children_of(pid)))
    return 0


def _connections(url: str) -> int:
    with psycopg.connect(url, connect_timeout=5) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
    return int(row[0]) if row else 0
