"""Children that end are restarted, or everything stops."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from operations.embedded.supervisor import (
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
from tests.ports import free_port
from tests.processes import has_ended
from tests.waiting import wait_until

QUICK = RestartPolicy(
    first_delay_s=0.05, longest_delay_s=0.05, failures=3, hangs_s=0.2, watch_pause_s=0.05
)
RUNS = """
import pathlib, signal, sys, time
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
def stop(*_):
    with (folder / "stops").open("a") as file: file.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
with (folder / (name + ".starts")).open("a") as file: file.write("x")
print(name, "runs", flush=True)
time.sleep(60)
"""
STUBBORN = """
from tests.ports import free_port
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stubborn runs", flush=True)
time.sleep(60)
"""

# Answers one connection of the socket that it is given, and ends.
ANSWERS = """
import os, socket, sys
assert os.environ["LISTEN_PID"] == str(os.getpid())
assert os.environ["LISTEN_FDS"] == "1"
connection, _ = socket.socket(fileno=3).accept()
connection.sendall(sys.argv[1].encode())
"""

Scenario = Callable[[Supervisor], Awaitable[None]]


def python(script: str, *arguments: str) -> Launch:
    return Launch(command=(sys.executable, "-c", script, *arguments))


def runner(folder: Path, name: str, *, needs: tuple[str, ...] = ()) -> Process:
    """Return a child that records each start and each clean stop."""
    return Process(
        name=name,
        launch=python(RUNS, str(folder), name),
        needs=needs,
        probe=(folder / f"{name}.starts").exists,
    )


def supervise(scenario: Scenario) -> int:
    async def run() -> int:
        return await Supervisor(restart_policy=QUICK).run(scenario)

    return asyncio.run(run())


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def eventually(question: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, question)


def test_an_interrupt_stops_the_children_in_reverse_order(tmp_path: Path) -> None:
    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([runner(tmp_path, "first")])
        await supervisor.start([runner(tmp_path, "second"), runner(tmp_path, "third")])
        interrupt()

    status = supervise(scenario)

    assert status == 0
    assert (tmp_path / "stops").read_text().split() == ["third", "second", "first"]


def test_a_killed_child_is_started_again(tmp_path: Path) -> None:
    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([runner(tmp_path, "web")])
        killed = supervisor.pids()["web"]
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: supervisor.pids().get("web", killed) != killed)
        await eventually(lambda: (tmp_path / "web.starts").read_text() == "xx")
        interrupt()

    assert supervise(scenario) == 0


def test_a_child_that_hangs_is_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hanging: set[int] = set()

    async def scenario(supervisor: Supervisor) -> None:
        process = replace(
            runner(tmp_path, "web"), is_alive=lambda: supervisor.pids().get("web") not in hanging
        )
        await supervisor.start([process])
        hanging.add(supervisor.pids()["web"])
        await eventually(lambda: (tmp_path / "web.starts").read_text() == "xx")
        interrupt()

    assert supervise(scenario) == 0
    assert "has not answered for 0.2 s" in capsys.readouterr().out


def test_a_connection_waits_for_the_next_child_with_the_same_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        launch = python(ANSWERS, "hello")
        child = Process(name="brain", launch=replace(launch, sockets=(listening,)))
        answers = []

        def ask() -> None:
            with socket.create_connection(listening.getsockname(), timeout=20) as connection:
                answers.append(connection.recv(100))

        async def scenario(supervisor: Supervisor) -> None:
            await supervisor.start([child])
            for _ in range(2):
                await asyncio.to_thread(ask)
            interrupt()

        assert supervise(scenario) == 0
    assert answers == [b"hello", b"hello"]


def test_a_child_that_keeps_failing_stops_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = tmp_path / "was-ready"
    script = f"import pathlib, time; pathlib.Path({str(flag)!r}).touch(); time.sleep(.3); exit(3)"
    fails = Process(name="worker", launch=python(script), probe=flag.exists)

    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([runner(tmp_path, "first"), fails])

    status = supervise(scenario)

    assert status == 1
    assert "worker does not stay up (ended with exit status 3)" in capsys.readouterr().err
    assert (tmp_path / "stops").read_text() == "first\n"


def test_a_child_that_never_becomes_ready_is_reported_immediately(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fails = Process(name="web", launch=python("exit(3)"), probe=http_probe(free_port(), "/readyz"))

    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([fails])

    assert supervise(scenario) == 1
    assert "web did not come up (ended with exit status 3)" in capsys.readouterr().err


def test_a_child_that_is_never_ready_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hangs = Process(
        name="web",
        launch=python("import time; time.sleep(60)"),
        probe=lambda: False,
        ready_timeout_s=0.3,
    )

    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([hangs])

    assert supervise(scenario) == 1
    assert "not ready after 0.3 s" in capsys.readouterr().out


def test_a_child_waits_for_what_it_needs(tmp_path: Path) -> None:
    async def scenario(supervisor: Supervisor) -> None:
        needed = Process(
            name="base",
            launch=runner(tmp_path, "base").launch,
            probe=(tmp_path / "go").exists,
        )
        starting = asyncio.ensure_future(
            supervisor.start([needed, runner(tmp_path, "web", needs=("base",))])
        )
        await eventually((tmp_path / "base.starts").exists)
        await asyncio.sleep(0.2)
        assert not (tmp_path / "web.starts").exists()
        (tmp_path / "go").touch()
        await starting
        interrupt()

    assert supervise(scenario) == 0


def test_a_second_interrupt_kills_the_children(tmp_path: Path) -> None:
    stubborn = Process(name="stubborn", launch=python(STUBBORN))

    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([stubborn])
        await asyncio.sleep(0.3)
        asyncio.get_running_loop().call_later(0.3, interrupt)
        interrupt()

    began = time.monotonic()
    status = supervise(scenario)

    assert status == 0
    assert time.monotonic() - began < 5


def test_the_process_group_of_a_killed_child_is_ended(tmp_path: Path) -> None:
    marker = tmp_path / "grandchild"
    script = (
        "import pathlib, subprocess, time;"
        f"p = subprocess.Popen(['/bin/sleep', '60']); pathlib.Path({str(marker)!r})"
        ".write_text(str(p.pid)); time.sleep(60)"
    )
    master = Process(name="web", launch=python(script), probe=marker.exists)

    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([master])
        await eventually(marker.read_text)
        grandchild = int(marker.read_text())
        os.kill(supervisor.pids()["web"], signal.SIGKILL)
        await eventually(lambda: has_ended(grandchild))
        interrupt()

    assert supervise(scenario) == 0


def test_a_failed_command_stops_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([runner(tmp_path, "first")])
        await supervisor.complete("setup", python("import sys; sys.exit('no table')"))

    assert supervise(scenario) == 1
    shown = capsys.readouterr()
    assert "no table" in shown.out
    assert "setup failed (exit status 1)" in shown.err
    assert (tmp_path / "stops").read_text() == "first\n"


def test_a_completed_command_returns_its_output(tmp_path: Path) -> None:
    said: list[str] = []

    async def scenario(supervisor: Supervisor) -> None:
        said.append(await supervisor.complete("setup", python("print('x' * 100_000)")))
        interrupt()

    assert supervise(scenario) == 0
    assert said == ["x" * 100_000 + "\n"]


def test_log_lines_carry_no_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "import time; print('\\x1b[2Jgone', flush=True); time.sleep(60)"

    async def scenario(supervisor: Supervisor) -> None:
        await supervisor.start([Process(name="web", launch=python(script))])
        await eventually(lambda: "gone" in heard())
        interrupt()

    said: list[str] = []

    def heard() -> str:
        said.append(capsys.readouterr().out)
        return "".join(said)

    supervise(scenario)

    assert "web       | \N{REPLACEMENT CHARACTER}[2Jgone" in heard()


ORPHANS = """
import os, subprocess, sys
child = subprocess.Popen(["/bin/sleep", "60"], stdin=subprocess.DEVNULL, stdout=2)
print(child.pid, flush=True)
"""


def orphan(folder: Path) -> int:
    """Return the id of a process whose parent, a child of a supervisor of the folder, is gone."""
    made = subprocess.run(
        [sys.executable, "-c", ORPHANS],
        env={**os.environ, MARK: str(folder)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(made.stdout)


def test_what_a_killed_supervisor_left_is_found_by_its_data_folder_alone(tmp_path: Path) -> None:
    ours, other = orphan(tmp_path / "var"), orphan(tmp_path / "var2")

    (tmp_path / "link").symlink_to("var")
    assert marked_by(tmp_path / "var") == marked_by(tmp_path / "link") == {ours}
    assert end(lambda: marked_by(tmp_path / "var"), LEFTOVER_STOP) == set()

    assert has_ended(ours)
    assert not has_ended(other)
    os.kill(other, signal.SIGKILL)


def test_a_leftover_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], env={**os.environ, MARK: str(tmp_path)}, stdout=-1
    ) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()

        end(lambda: marked_by(tmp_path), ((signal.SIGTERM, 0.1), (signal.SIGKILL, 5.0)))

        assert stubborn.wait(5) == -signal.SIGKILL
