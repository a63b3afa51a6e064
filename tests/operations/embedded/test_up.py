"""`up` from end to end, with a fake web server and a fake worker.

One platform for all of it: each test finds it running, however the one before has left it.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from common.machine.errors import StartError
from common.machine.folders import make_folders
from common.machine.ports import port_from
from common.settings.runtime_env import load_runtime_env
from operations.embedded.platform_processes import platform_recipe
from operations.embedded.supervisor import processes_in
from tests.operations.embedded.support import Platform
from tests.ports import free_port
from tests.processes import has_ended
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def first_start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Return a started platform with its own databases."""
    one = Platform(tmp_path_factory.mktemp("up") / "var", port=free_port())
    one.start()
    yield one
    one.end()
    shutil.rmtree(make_folders(one.data_dir).clusters_dir, ignore_errors=True)


@pytest.fixture
def platform(first_start: Platform) -> Platform:
    """Return the running platform, with its worker."""
    if first_start.process is None or first_start.process.poll() is not None:
        first_start.start()
    wait_until(lambda: first_start.pid_of("worker"))
    return first_start


def stop(platform: Platform) -> int:
    """Press Ctrl-C, wait, and return the exit status."""
    assert platform.process is not None
    platform.process.send_signal(signal.SIGINT)
    return platform.process.wait(30)


def starts(platform: Platform) -> int:
    """Return the number of starts recorded in its database."""
    with psycopg.connect(load_runtime_env(platform.data_dir)["DATABASE_URL"]) as connection:
        return len(connection.execute("SELECT FROM starts").fetchall())


def test_a_second_start_keeps_data_and_secrets(platform: Platform) -> None:
    first, known = load_runtime_env(platform.data_dir), starts(platform)
    pids = platform.pids()
    assert stop(platform) == 0
    assert all(map(has_ended, pids))

    platform.start()

    assert f"zonal_dev_{known + 1}" in platform.said()
    assert load_runtime_env(platform.data_dir) == first
    assert first["ZAUTH_DEV_ORG_ID"] == "7"
    assert stat.S_IMODE((platform.data_dir / "runtime.env").stat().st_mode) == 0o600


def test_a_start_with_another_key_keeps_the_key_of_the_data(platform: Platform) -> None:
    first = load_runtime_env(platform.data_dir)
    assert stop(platform) == 0
    platform.start(ZSECRET_KEYS="another", ZMFA_SECRET_FILE="/dev/null")
    assert stop(platform) == 0

    platform.start()

    assert load_runtime_env(platform.data_dir) == first


def test_the_banner_shows_addresses_and_a_first_query(platform: Platform) -> None:
    said = platform.said()

    assert f"http://127.0.0.1:{platform.port}/v1/" in said
    assert str(platform.data_dir) in said
    line = r"^  curl -s http://127\.0\.0\.1.*Bearer zonal_dev_\d+'"
    assert len(re.findall(line, said, re.MULTILINE)) == 3


def test_a_second_terminal_finds_the_databases(platform: Platform) -> None:
    settings = load_runtime_env(platform.data_dir)

    for name in ("DATABASE_URL", "ZSQL_CLUSTER_URL"):
        psycopg.connect(settings[name]).close()


def test_each_killed_child_is_restarted(platform: Platform) -> None:
    for name in ("control", "tenants", "web", "worker"):
        killed = platform.pid_of(name)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: platform.pid_of(name) not in (0, killed))  # noqa: B023 - used at once

    settings = load_runtime_env(platform.data_dir)
    wait_until(lambda: accepts(settings["DATABASE_URL"]))
    wait_until(lambda: accepts(settings["ZSQL_CLUSTER_URL"]))
    assert stop(platform) == 0


def accepts(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def test_killing_the_supervisor_leaves_no_child_and_the_next_start_works(
    platform: Platform,
) -> None:
    assert platform.process is not None
    pids, known = platform.pids(), starts(platform)
    platform.process.kill()
    platform.process.wait()

    wait_until(lambda: all(map(has_ended, pids)))
    homes = make_folders(platform.data_dir)
    for name in ("control", "tenants"):
        data = homes.cluster_home(name) / "data"
        assert processes_in(data.resolve(), program="postgres") == set()
    platform.start()

    assert f"zonal_dev_{known + 1}" in platform.said()


def test_killing_everything_at_the_same_time_loses_nothing(platform: Platform) -> None:
    assert platform.process is not None
    known = starts(platform)
    for pid in (platform.process.pid, *platform.pids()):
        # Some do not outlive the first one.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    platform.process.wait()

    platform.start()

    assert f"zonal_dev_{known + 1}" in platform.said()


def test_a_port_in_use_is_refused_with_the_setting(tmp_path: Path) -> None:
    platform = Platform(tmp_path / "var", port=free_port())
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", platform.port))
        stranger.listen()
        status = platform.begin().wait(30)

    assert status == 1
    assert platform.said().startswith(f"Port {platform.port} is in use by another program.")
    assert "PORT=" in platform.said()
    assert len(platform.said().splitlines()) == 1


def test_a_second_up_with_the_same_data_is_refused(platform: Platform) -> None:
    assert platform.process is not None
    second = Platform(platform.data_dir, port=platform.port)
    second.log = platform.data_dir.parent / "second.log"

    status = second.begin().wait(30)

    assert status == 1
    assert f"already runs with the data in {platform.data_dir}" in second.said()
    assert f"process {platform.process.pid}" in second.said()
    assert len(second.said().splitlines()) == 1


def test_an_external_database_is_used_and_not_written_to_runtime_env(
    platform: Platform, tmp_path: Path
) -> None:
    settings, known = load_runtime_env(platform.data_dir), starts(platform)
    other = Platform(tmp_path / "other", port=free_port())
    other.start(
        DATABASE_URL=settings["DATABASE_URL"], ZSQL_CLUSTER_URL=settings["ZSQL_CLUSTER_URL"]
    )

    assert other.end() == 0
    assert f"zonal_dev_{known + 1}" in other.said()
    assert "PostgreSQL" not in other.said()
    assert not {"DATABASE_URL", "ZSQL_CLUSTER_URL"} & set(load_runtime_env(other.data_dir))


@pytest.mark.parametrize("text", ["0", "65536", "eighty", "-1", "8000.0"])
def test_an_invalid_port_is_refused_with_the_setting(text: str) -> None:
    with pytest.raises(StartError, match=r"^PORT must be from 1 to 65535\.$"):
        port_from({"PORT": text}, "PORT", default=8000)


def test_an_address_with_another_port_is_refused_with_the_setting() -> None:
    with pytest.raises(StartError, match=r"Set PORT alone\.$"):
        platform_recipe({"ZBIND": "127.0.0.1:18300"})
    assert platform_recipe({"ZBIND": "0.0.0.0:18300", "PORT": "18300"}).web.port == 18300
