"""docs/architecture.md names existing paths, and the layout follows its rules."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "architecture.md"
APPS = (
    *("accounts", "edgecache", "environments", "platform_site", "recovery", "sqlgateway"),
    "twofactor",
)
NAMED = re.compile(r"`((?:\w+/)+(?:\w+\.py)?)(?::(\w+))?`")
MODULES_IN_A_FOLDER = 25
LINES_IN_A_MODULE = 400


def modules() -> list[Path]:
    """Return every module of the applications but migrations."""
    found = (path for app in APPS for path in (ROOT / app).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


def named_places() -> list[tuple[str, str]]:
    """Return every (path, name) in the document; the name is empty for a path alone."""
    return sorted(set(NAMED.findall(DOCUMENT.read_text())))


@pytest.mark.parametrize(("path", "name"), named_places())
def test_every_place_named_in_the_architecture_document_exists(path: str, name: str) -> None:
    place = ROOT / path
    assert place.exists()
    if name:
        tree = ast.parse(place.read_text())
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_the_architecture_document_names_places() -> None:
    assert len(named_places()) > 30


def test_no_folder_holds_too_many_modules() -> None:
    counts = Counter(
        path.parent.relative_to(ROOT)
        for path in modules()
        if path.name != "__init__.py" and path.parent.name != "commands"
    )
    assert {
        str(folder): count for folder, count in counts.items() if count > MODULES_IN_A_FOLDER
    } == {}


def test_no_module_is_too_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()
    }
    assert {path: count for path, count in lengths.items() if count > LINES_IN_A_MODULE} == {}
