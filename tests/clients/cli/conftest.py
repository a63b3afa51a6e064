"""The command, run in this process as a user who is signed in."""

import io
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import cast
from tests.clients.conftest import Platform
from tests.clients.front import Front
from zonal.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """What a command ended with."""

    status: int
    out: str
    err: str


# The time that a line of a log begins with.
LOGGED = re.compile(r"\d{4}-\d\d-\d\dT")
Run = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the command's own files, and nothing in its environment."""
    for name in ("ZONAL_URL", "ZONAL_TOKEN", "ZONAL_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Return a function that runs the command with arguments and a standard input."""

    def call(*arguments: str, stdin: str | bytes = "") -> Outcome:
        content = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        capfdbinary.readouterr()
        try:
            status = main(arguments)
        except SystemExit as exc:
            status = int(str(exc.code))
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        # The platform runs in this process and writes its log there.
        said = [line for line in err.decode().split("\n") if not LOGGED.match(line)]
        return Outcome(status, out.decode(), "\n".join(said))

    return call


@pytest.fixture
def alice(run: Run, front: Front, platform: Platform) -> Run:
    """Return the command of Alice, who has signed in with her password."""
    signed_in = run(
        "login",
        "alice@example.com",
        "--url",
        front.url,
        "--environment",
        "live",
        "--password-stdin",
        stdin=f"{cast.PASSWORD}\n",
    )
    assert signed_in.status == 0, signed_in.err
    return run
