"""What is asked at a terminal: a password, a code, and statements at the prompt."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import cast
from tests.clients.cli.conftest import Run
from tests.clients.conftest import Platform
from tests.clients.front import Front
from tests.twofactor.holder import with_totp
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).resolve().parents[3] / "clients/python"


class Terminal:
    """A terminal with the command in it."""

    def __init__(self, process: "subprocess.Popen[bytes]", handle: int) -> None:
        self.process = process
        self._handle = handle
        self.shown = ""
        self._seen = 0

    def until(self, text: str) -> str:
        """Return what is shown from the last text that was waited for to this one."""
        at = self._seen
        while text not in self.shown[at:]:
            ready, _, _ = select.select([self._handle], [], [], LIMIT_S)
            assert ready, self.shown
            try:
                self.shown += os.read(self._handle, 65_536).decode()
            except OSError:
                raise AssertionError(self.shown) from None
        self._seen = self.shown.index(text, at) + len(text)
        return self.shown[at : self._seen]

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._handle, f"{text}\n".encode())


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    """Run the command in a terminal of its own."""
    ours, theirs = pty.openpty()
    environ = os.environ | {"PYTHONPATH": str(PACKAGE), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "zonal", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
        assert process.wait(timeout=LIMIT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.usefixtures("folder")
def test_a_password_and_a_code_are_asked_for_and_not_shown(
    platform: Platform, front: Front
) -> None:
    holder = with_totp(cast.member(platform.home, "heidi@example.com", password=cast.PASSWORD))
    with terminal("login", "heidi@example.com", "--url", front.url) as screen:
        screen.until("Password: ")
        screen.type(cast.PASSWORD)
        screen.until("Code (totp): ")
        screen.type(holder.wrong_code())
        screen.until("Code (totp): ")
        code = holder.code()
        screen.type(code)
        screen.until("Signed in to")
    assert cast.PASSWORD not in screen.shown
    assert code not in screen.shown


def test_the_prompt_runs_statements_describes_and_remembers(alice: Run, folder: Path) -> None:
    with terminal("sql") as screen:
        screen.until("live=> ")
        screen.type("CREATE TABLE prompted (id int PRIMARY KEY,")
        screen.until("live-> ")
        screen.type("  name text DEFAULT ';');")
        screen.until("CREATE TABLE")
        screen.until("live=> ")
        screen.type("SELECT 40 + 2 AS answer;")
        assert "42" in screen.until("(1 row)")
        screen.type("SELECT 1/0;")
        screen.until("22012")
        screen.type("SELEC 1;")
        screen.until("\r\nSELEC 1;\r\n^")
        screen.type("\\d prompted")
        assert "PRIMARY KEY (id)" in screen.until("prompted_pkey ON")
        screen.type("\\x")
        screen.until("One column a line: on.")
        screen.type("SELECT 1 AS one, 2 AS two;")
        assert "Row 1" in screen.until("(1 row)")
        screen.type("SELECT 'my password';")
        screen.until("(1 row)")
        screen.type("\\dn")
        screen.until("public")
        screen.type("\\d nothing")
        screen.until("There is no table")
        screen.type("\\?")
        screen.until("Ctrl-C cancels it.")
        screen.type("\\q")
    history = (folder / "state/zonal/sql_history").read_text()
    assert "SELECT 40 + 2 AS answer;" in history
    assert "password" not in history
    assert (folder / "state/zonal/sql_history").stat().st_mode & 0o077 == 0


def test_an_interrupt_ends_the_statement_and_not_the_prompt(alice: Run, front: Front) -> None:
    with terminal("sql") as screen:
        screen.until("live=> ")
        front.hold()
        screen.type("SELECT pg_sleep(60);")
        wait_until(lambda: front.seen[-1] == ("POST", "/v1/sql"))
        os.kill(screen.process.pid, signal.SIGINT)
        screen.until("Cancelled.")
        screen.type("SELECT 'still here';")
        screen.until("(1 row)")
        screen.type("\\q")
