"""`exec`: throw-away clusters around a command."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from operations.embedded import throwaway
from tests.operations.embedded.support import PROJECT, environment
from tests.processes import has_ended
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

REPORT = """
import json, os, psycopg, sys
with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as c:
    c.execute("CREATE DATABASE made_by_tests")
    durable = c.execute("SHOW fsync").fetchone()[0]
psycopg.connect(os.environ["ZSQL_CLUSTER_URL"]).close()
names = ("DATABASE_URL", "ZDATA_DIR", "SECRET_KEY", "ZJWT_SECRET", "ZSECRET_KEYS")
seen = {"fsync": durable, "DATABASE_URL_FILE": os.environ.get("DATABASE_URL_FILE")}
print(json.dumps({**seen, **{name: os.environ[name] for name in names}}))
sys.exit(7)
"""


def exec_command(*command: str, options: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-m", "operations.embedded", "exec", *options, "--", *command]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return environment(ZDATA_DIR=str(tmp_path / "var"))


@pytest.mark.parametrize(("options", "fsync"), [((), "off"), (("--durable",), "on")])
def test_the_command_gets_databases_and_secrets_and_its_status_comes_back(
    environ: dict[str, str], options: Sequence[str], fsync: str
) -> None:
    callers = {"DATABASE_URL": "postgresql://mine/real", "DATABASE_URL_FILE": "/mine"}
    result = subprocess.run(
        exec_command(sys.executable, "-c", REPORT, options=options),
        env=environ | callers,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 7, result.stderr
    seen = json.loads(result.stdout)
    assert seen["fsync"] == fsync
    # Nothing of the caller's databases leaks into the command.
    assert seen["DATABASE_URL"].startswith("postgresql://zonal:")
    assert seen["DATABASE_URL_FILE"] is None
    assert seen["ZDATA_DIR"] != environ["ZDATA_DIR"]
    assert not Path(seen["ZDATA_DIR"]).parent.exists()


def begin(environ: dict[str, str], seen: Path) -> subprocess.Popen[bytes]:
    """Start a command that writes its data folder and its process id, and then waits."""
    script = f'echo "$ZDATA_DIR $$" > {seen}; exec sleep 60'
    process = subprocess.Popen(exec_command("sh", "-c", script), env=environ, cwd=PROJECT)
    wait_until(lambda: seen.exists() and seen.read_text().count("\n"))
    return process


def test_the_next_run_removes_the_leftovers_of_a_killed_run_and_passes_signals_on(
    environ: dict[str, str], tmp_path: Path
) -> None:
    killed = begin(environ, tmp_path / "killed")
    folder, pid = (tmp_path / "killed").read_text().split()
    pid_file = Path(folder).parent / "control" / "data" / "postmaster.pid"
    postmaster = int(pid_file.read_text().splitlines()[0])
    killed.kill()
    killed.wait()

    next_one = begin(environ, tmp_path / "next")

    wait_until(lambda: has_ended(int(pid)) and has_ended(postmaster))
    assert not Path(folder).parent.exists()
    next_one.terminate()
    assert next_one.wait(20) == 128 + signal.SIGTERM


@pytest.mark.parametrize("arguments", [["--help"], ["up", "--help"], ["exec", "--help"]])
def test_help_starts_nothing(arguments: list[str], environ: dict[str, str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "operations.embedded", *arguments],
        env=environ,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert re.search(r"clusters", result.stdout)
    assert not Path(environ["ZDATA_DIR"]).exists()


def test_a_command_that_does_not_exist_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    status = throwaway._run_in_foreground(["no-such-command"], os.environ)

    assert status != 0
    said = capfd.readouterr().err
    assert "no-such-command: No such file" in said
    assert "Traceback" not in said


def test_exec_without_a_command_is_refused(environ: dict[str, str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "operations.embedded", "exec"],
        env=environ,
        cwd=PROJECT,
        check=False,
    )

    assert result.returncode == 127
    assert os.environ.get("ZDATA_DIR") != environ["ZDATA_DIR"]


def test_a_brain_beside_the_command_has_its_own_ports() -> None:
    names = ("ZBRAIN_PORT", "ZBRAIN_S3_PORT", "ZBRAIN_WORKER_PORT")
    chosen = throwaway._brain_ports({})
    assert set(chosen) == set(names)
    assert len(set(chosen.values())) == 3
    # What the caller decided stays.
    assert throwaway._brain_ports({"ZBRAIN_PORT": "18081"}) == {}
