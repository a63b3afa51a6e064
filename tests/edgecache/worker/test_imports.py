"""A worker depends on the standard library, httptools, msgspec and uvloop only."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.edgecache.worker.running import unmeasured

ROOT = Path(__file__).parents[3]
LOOK = """
import sys
there = set(sys.modules)
import importlib, json, pkgutil
package = importlib.import_module({package!r})
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - there}})))
"""


def loaded(package: str) -> set[str]:
    """Return the top-level names that a package's modules import, without those of any process.

    A distribution's Python has modules of its own (Debian's sitecustomize).
    """
    said = subprocess.run(
        [sys.executable, "-c", LOOK.format(package=package)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=unmeasured(),
    ).stdout
    names = {name for name in json.loads(said) if not name.startswith("_")}
    # msgspec imports typing_extensions where that is installed.
    return names - sys.stdlib_module_names - {"typing_extensions"}


def test_the_protocol_imports_only_the_standard_library_and_msgspec() -> None:
    assert loaded("edgecache.protocol") == {"edgecache", "msgspec"}


def test_a_worker_does_not_import_django() -> None:
    needed = {"common", "edgecache", "httptools", "msgspec", "uvloop"}
    assert loaded("edgecache.worker") - {"cython_runtime"} == needed


def test_the_command_imports_of_the_platform_only_what_runs_without_django() -> None:
    code = "import sys, edgecache.worker.__main__; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    names = said.split()
    parts = {name.split(".")[1] for name in names if name.startswith("common.")}
    assert parts == {"machine", "settings", "version"}
    assert not {"django", "structlog"} & {*names}


def test_the_http_server_and_client_do_not_import_django() -> None:
    assert loaded("edgecache.http") - {"cython_runtime"} == {"edgecache", "httptools"}


@pytest.mark.parametrize("banned", ["django", "psycopg", "requests", "structlog", "httpx"])
def test_a_worker_has_its_own_requirements_file(banned: str) -> None:
    pinned = (ROOT / "requirements" / "worker.txt").read_text()
    assert f"\n{banned}" not in pinned


def test_a_worker_s_requirements_match_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = (ROOT / "requirements" / "worker.txt").read_text()
    for wanted in project["optional-dependencies"]["worker"]:
        assert f"\n{wanted}==" in "\n" + pinned
