"""The programs that people use with the object API, and what a plain HTTP client gets."""

import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest


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
