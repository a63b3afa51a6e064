"""The programs that people use with the object API, and what a plain HTTP client gets."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

# The CLI itself, several commands in one interpreter: to start one takes longer than they do.
AWS = """
import contextlib, io, json, sys
from awscli.clidriver import create_clidriver
said = []
for command in json.load(sys.stdin):
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with contextlib.redirect_stdout(out):
        status = create_clidriver().main(command)
    if status:
        sys.exit(f"{command}: {status}")
    said.append(out.buffer.getvalue().decode())
json.dump(said, sys.stdout)
"""


def program(name: str) -> str:
    """Return the path of a tool: of this environment, or of the machine."""
    own = Path(sys.executable).parent / name
    found = str(own) if own.exists() else shutil.which(name)
    assert found, f"{name} is not installed"
    return found


def packaged(name: str, *, package: str) -> str:
    """Return the path of a program of Debian's; skip the test without it, but not in CI."""
    found = shutil.which(name, path=os.defpath)
    if found is None and not os.environ.get("CI"):
        pytest.skip(f"{name} is not installed (Debian's package {package})")
    assert found, f"{name} is not installed: .ci/run lacks {package}"
    return found


def fetched(url: str) -> bytes:
    """Return what a plain HTTP client gets."""
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - loopback
        content: bytes = answer.read()
    return content


def run(environment: dict[str, str], *command: str) -> bytes:
    """Run a tool by its name or path; return its output."""
    name, *options = command
    path = name if Path(name).is_absolute() else program(name)
    done = subprocess.run(
        [path, *options],
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def aws(
    environment: dict[str, str], *commands: Sequence[str], python: str = sys.executable
) -> list[str]:
    """Run commands of the AWS CLI; return the output of each. python: the one that has it."""
    done = subprocess.run(
        [python, "-c", AWS],
        env=environment,
        input=json.dumps(commands).encode(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    said: list[str] = json.loads(done.stdout)
    return said
