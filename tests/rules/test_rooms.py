"""Rooms are layers: docs/rooms.txt, the linter, the documents and the code say the same."""

import ast
import re
import tomllib
from typing import Any

import pytest

from tests.packages import ROOT
from tests.rules import rooms

CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "importlinter"
]["contracts"]
PACKAGES = [name for name in rooms.ROOMS if rooms.PATHS.get(name, "").endswith("/__init__.py")]


def test_every_module_has_a_room_and_every_room_a_module() -> None:
    assert [module for module in rooms.PATHS if not rooms.room_of(module)] == []
    filled = {rooms.room_of(module) for module in rooms.PATHS}
    assert [name for name in rooms.ROOMS if name not in filled] == []


def test_a_room_imports_only_from_rooms_below_it() -> None:
    """Also the modules of a package that are no rooms of their own, which no contract names."""
    upwards = [
        f"{each.source}:{each.line} imports {each.target}"
        for (source, target), found in rooms.imports_between().items()
        if rooms.ROOMS[target].floor <= rooms.ROOMS[source].floor
        for each in found
    ]
    assert upwards == []


@pytest.mark.parametrize("container", ["", *rooms.containers()])
def test_the_linter_checks_the_rooms(container: str) -> None:
    """A failure shows the layers that pyproject.toml must have."""
    expected = [name for name in rooms.layers(container) if name != "manage"]
    contracts = [
        contract["layers"]
        for contract in CONTRACTS
        if contract["type"] == "layers" and contract.get("containers", [""]) == [container]
    ]
    assert contracts == [expected]


def test_the_architecture_document_has_the_rooms() -> None:
    """A failure shows the tree that the document must have."""
    document = (ROOT / "docs" / "architecture.md").read_text()
    assert f"\n```\n{rooms.tree()}\n```\n" in document


@pytest.mark.parametrize("name", PACKAGES)
def test_a_door_says_what_the_room_is_and_what_others_use(name: str) -> None:
    """The docstring of a package: a sentence, what others import, the rooms that it imports."""
    text = ast.get_docstring(ast.parse((ROOT / rooms.PATHS[name]).read_text())) or ""
    sentence, _, rest = text.partition("\n")
    assert sentence == rooms.ROOMS[name].sentence[:1].upper() + rooms.ROOMS[name].sentence[1:] + "."
    # A sentence that ends with the text or before the other's key; names of rooms have dots.
    named = dict(re.findall(r"(Door|Imports): (.*?)\.(?= Imports:|$)", " ".join(rest.split())))
    door, below = ({*named.get(key, "").split(", ")} - {""} for key in ("Door", "Imports"))
    assert rooms.used_of(name) <= door
    assert {each for each in door if f"{name}.{each}" not in rooms.PATHS} == set()
    assert below == rooms.rooms_below(name)
