"""`up` from end to end, with stand-ins for the web server and the worker."""

import contextlib
import os
import re
import signal
import socket
import stat

import psycopg
import pytest

from platform_site.embedded.errors import StartError
from platform_site.embedded.folders import make_folders
from platform_site.embedded.identity import began_at, processes_in
from platform_site.embedded.ports import port_from
from platform_site.embedded.runtime_env import load_runtime_env
from tests.platform_site.embedded.support import Platform
from tests.ports import free_port
from tests.waiting import wait_until


def stop(platform: Platform) -> int:
    """Press Ctrl-C and wait; the exit status."""
    assert platform.process is not None
    platform.process.send_signal(signal.SIGINT)
    return platform.process.wait(30)


def test_a_second_start_finds_data_and_secrets_again(platform: Platform) -> None:
    platform.start()
    first = load_runtime_env(platform.data_dir)
    pids = platform.pids()
    assert stop(platform) == 0
    assert not [pid for pid in pids if began_at(pid)]

    platform.start()

    assert "zonal_dev_2" in platform.said()
    assert load_runtime_env(platform.data_dir) == first
    assert first["ZAUTH_DEV_ORG_ID"] == "7"
    assert stat.S_IMODE((platform.data_dir / "runtime.env").stat().st_mode) == 0o600


def test_the_banner_tells_where_and_how(platform: Platform) -> None:
    platform.start()
    wait_until(lambda: "Ctrl-C stops everything" in platform.said())

    said = platform.said()

    assert f"http://127.0.0.1:{platform.port}/v1/" in said
    assert str(platform.data_dir) in said
    assert (
        len(re.findall(r"^  curl -s http://127\.0\.0\.1.*Bearer zonal_dev_1'", said, re.MULTILINE))
        == 3
    )


def test_a_second_terminal_finds_the_databases(platform: Platform) -> None:
    platform.start()

    settings = load_runtime_env(platform.data_dir)

    for name in ("DATABASE_URL", "ZSQL_CLUSTER_URL"):
        psycopg.connect(settings[name]).close()


def test_each_killed_child_heals(platform: Platform) -> None:
    platform.start()
    wait_until(lambda: platform.pid_of("worker"))
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
    platform.start()
    assert platform.process is not None
    wait_until(lambda: platform.pid_of("worker"))
    pids = platform.pids()
    platform.process.kill()
    platform.process.wait()

    wait_until(lambda: not [pid for pid in pids if began_at(pid)])
    homes = make_folders(platform.data_dir)
    for name in ("control", "tenants"):
        data = homes.cluster_home(name) / "data"
        assert processes_in(data.resolve(), program="postgres") == []
    platform.start()

    assert "zonal_dev_2" in platform.said()


def test_killing_everything_at_once_loses_nothing(platform: Platform) -> None:
    platform.start()
    assert platform.process is not None
    wait_until(lambda: platform.pid_of("worker"))
    for pid in (platform.process.pid, *platform.pids()):
        # Some do not outlive the first one.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    platform.process.wait()

    platform.start()

    assert "zonal_dev_2" in platform.said()


def test_a_taken_port_is_one_sentence_with_the_setting(platform: Platform) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", platform.port))
        stranger.listen()
        status = platform.begin().wait(30)

    assert status == 1
    assert platform.said().startswith(f"Port {platform.port} is in use by another program.")
    assert "PORT=" in platform.said()
    assert len(platform.said().splitlines()) == 1


def test_a_second_up_with_the_same_data_is_refused(platform: Platform) -> None:
    platform.start()
    assert platform.process is not None
    second = Platform(platform.data_dir, port=platform.port)
    second.log = platform.data_dir.parent / "second.log"

    status = second.begin().wait(30)

    assert status == 1
    assert f"already runs with the data in {platform.data_dir}" in second.said()
    assert f"process {platform.process.pid}" in second.said()
    assert len(second.said().splitlines()) == 1


def test_a_database_of_ones_own_is_used_and_not_written_down(platform: Platform) -> None:
    platform.start()
    settings = load_runtime_env(platform.data_dir)
    other = Platform(platform.data_dir.parent / "other", port=free_port())
    process = other.begin(
        DATABASE_URL=settings["DATABASE_URL"], ZSQL_CLUSTER_URL=settings["ZSQL_CLUSTER_URL"]
    )
    wait_until(lambda: "Zonal is up" in other.said())
    process.terminate()

    assert process.wait(30) == 0
    assert "zonal_dev_2" in other.said()
    assert "PostgreSQL" not in other.said()
    assert not {"DATABASE_URL", "ZSQL_CLUSTER_URL"} & set(load_runtime_env(other.data_dir))


@pytest.mark.parametrize("text", ["0", "65536", "eighty", "-1", "8000.0"])
def test_a_port_that_is_none_is_refused_with_the_setting(text: str) -> None:
    with pytest.raises(StartError, match=f"PORT must be from 1 to 65535, not '{text}'"):
        port_from({"PORT": text}, "PORT", default=8000)
