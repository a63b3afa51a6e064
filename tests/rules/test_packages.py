"""Each list of the platform's packages is complete; a failure names the file to edit."""

import re
import tomllib
from fnmatch import fnmatch
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings

from tests.deploy.ignore_rules import rules, taken
from tests.packages import FILES, PACKAGES, ROOT, sources

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOLS = PYPROJECT["tool"]
TASK = re.compile(r"^@app\.(?:task|periodic)\b", re.MULTILINE)


def in_layers() -> set[str]:
    """Return the packages that the contract of layers names, or parts of which it names."""
    (contract,) = (
        each
        for each in TOOLS["importlinter"]["contracts"]
        if each["type"] == "layers" and not each.get("containers")
    )
    modules = (name.strip() for layer in contract["layers"] for name in re.split(r"[|:]", layer))
    return {name.partition(".")[0] for name in modules}


def in_image() -> set[str]:
    """Return the packages that an image holds."""
    starts = [f"{package}/__init__.py" for package in PACKAGES]
    kept = taken(starts, rules((ROOT / ".dockerignore").read_text()))
    return {path.partition("/")[0] for path in kept}


def in_architecture() -> set[str]:
    """Return the packages of the tree in the architecture document, without its other folders."""
    tree = (ROOT / "docs/architecture.md").read_text().partition("\n```\n")[2].partition("\n```")[0]
    names = re.findall(r"^(\w+)/", tree, re.MULTILINE)
    return {name for name in names if name in PACKAGES or not (ROOT / name).is_dir()}


LISTS = {
    ".dockerignore": in_image,
    "pyproject.toml, [tool.coverage.run] source": lambda: {*TOOLS["coverage"]["run"]["source"]},
    "pyproject.toml, [tool.importlinter] root_packages": lambda: {
        *TOOLS["importlinter"]["root_packages"]
    },
    "pyproject.toml, layers of [tool.importlinter]": in_layers,
    "docs/architecture.md, the tree": in_architecture,
}


def test_there_are_packages() -> None:
    assert len(PACKAGES) > 5
    assert "platform_site" in PACKAGES


@pytest.mark.parametrize("place", LISTS)
def test_a_list_has_every_package(place: str) -> None:
    listed = LISTS[place]()
    missing, gone = sorted({*PACKAGES} - listed), sorted(listed - {*PACKAGES})
    assert not missing, f"Add {missing} to {place}."
    assert not gone, f"Remove {gone} from {place}."


def test_every_app_is_installed() -> None:
    names = {config.__module__ for config in apps.get_app_configs()}
    found = {
        str(path.relative_to(ROOT)).removesuffix(".py").replace("/", ".")
        for path in sources()
        if path.name == "apps.py"
    }
    missing = sorted(found - names)
    assert not missing, f"Add {missing} to INSTALLED_APPS in platform_site/settings.py."


def test_every_module_of_tasks_is_imported_by_the_task_worker() -> None:
    """A task of a module that nothing imports would wait in the queue for ever."""
    found = {
        str(path.relative_to(ROOT)).removesuffix(".py").replace("/", ".")
        for path in sources()
        if TASK.search(path.read_text())
    }
    assert len(found) > 10
    # The task queue imports ``tasks`` of each app by itself.
    own = {f"{config.name}.tasks" for config in apps.get_app_configs()}
    missing = sorted(found - own - {*settings.PROCRASTINATE_IMPORT_PATHS})
    assert not missing, f"Add {missing} to PROCRASTINATE_IMPORT_PATHS in platform_site/settings.py."


PATTERNS = {
    "[tool.coverage.run] omit": TOOLS["coverage"]["run"]["omit"],
    "[tool.ruff.lint.per-file-ignores]": [*TOOLS["ruff"]["lint"]["per-file-ignores"]],
    "[tool.djlint.per-file-ignores]": [
        f"{start}*" for start in TOOLS["djlint"]["per-file-ignores"]
    ],
}


@pytest.mark.parametrize("place", PATTERNS)
def test_every_exempted_path_exists(place: str) -> None:
    """What moved away from an exempted path is checked again, and its exemption goes."""
    for pattern in PATTERNS[place]:
        found = any(fnmatch(path, pattern) for path in FILES)
        assert found, f"No file matches {pattern}: edit pyproject.toml, {place}."
