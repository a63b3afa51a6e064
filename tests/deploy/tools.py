"""What checks the files of deploy/: the programs that read them in production."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"
# What an operator has to name; deploy/compose.yaml refuses to start without.
NAMES: Final = {
    "ZONAL_ACME_EMAIL": "ops@example.com",
    "ZONAL_DOMAIN": "app.example.com",
    "ZONAL_OBJECTS_DOMAIN": "objects.example.com",
    "ZMAIL_FROM": "zonal@example.com",
    "ZBRAIN_WORKER_URL": "https://brain.example.com:8083",
}


def program(name: str, *, package: str) -> str:
    """Return the path of a program of Debian's; skip the test without it, but not in CI."""
    found = shutil.which(name)
    if found is None and not os.environ.get("CI"):
        pytest.skip(f"{name} is not installed (Debian's package {package})")
    assert found, f"{name} is not installed: .ci/run lacks {package}"
    return found


def run(
    *command: str | Path, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; return its status and output."""
    return subprocess.run(
        [str(part) for part in command],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
    )
