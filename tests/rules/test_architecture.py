"""docs/architecture.md names existing paths."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "architecture.md"
NAMED = re.compile(r"`((?:\w+/)+(?:\w+\.py)?)(?::(\w+))?`")


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
