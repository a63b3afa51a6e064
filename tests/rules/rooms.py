"""The rooms of the platform (docs/rooms.txt), and the imports between them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from tests.packages import FILES, ROOT

TEXT: Final = (ROOT / "docs" / "rooms.txt").read_text()
OUTSIDE: Final = ("tests/", "benchmarks/", "clients/", "docs/", "deploy/")


class Room(NamedTuple):
    """floor: counted from the top; neighbours have the same."""

    name: str
    floor: int
    sentence: str


def rows() -> Iterator[list[tuple[str, str]]]:
    """Yield the rooms of each line with their sentences."""
    for line in TEXT.splitlines():
        names, _, sentences = line.partition("#")
        if names.strip():
            yield [
                (name.strip(), sentence.strip())
                for name, sentence in zip(names.split("|"), sentences.split("|"), strict=True)
            ]


ROOMS: Final = {
    name: Room(name, floor, sentence) for floor, row in enumerate(rows()) for name, sentence in row
}
PATHS: Final = {
    path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
    for path in FILES
    if path.endswith(".py") and not path.startswith(OUTSIDE) and "/migrations/" not in path
}


def room_of(module: str) -> str:
    """Return the room of a module: the longest name that it begins with; '' if there is none."""
    while module and module not in ROOMS:
        module = module.rpartition(".")[0]
    return module


def layers(container: str) -> list[str]:
    """Return the layers of a package as import-linter writes them; '' for the whole platform."""
    depth = container.count(".") + 1 if container else 0
    return [
        " | ".join(name.rpartition(".")[2] for name, _ in row)
        for row in rows()
        if row[0][0].rpartition(".")[0] == container and row[0][0].count(".") == depth
    ]


def containers() -> list[str]:
    """Return the packages that have rooms inside, in the order of the file."""
    return [*dict.fromkeys(name.rpartition(".")[0] for name in ROOMS if "." in name)]


class Import(NamedTuple):
    source: str
    target: str
    line: int


def imports() -> Iterator[Import]:
    """Yield every import of a module by a module, also those within functions."""
    for module, path in PATHS.items():
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in PATHS:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield Import(module, whole if whole in PATHS else node.module, node.lineno)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in PATHS:
                        yield Import(module, alias.name, node.lineno)


@cache
def imports_between() -> dict[tuple[str, str], list[Import]]:
    """Return the imports between rooms: (importing room, imported room)."""
    found: dict[tuple[str, str], list[Import]] = defaultdict(list)
    for each in imports():
        source, target = room_of(each.source), room_of(each.target)
        if source != target:
            found[source, target].append(each)
    return dict(found)


def used_of(room: str) -> set[str]:
    """Return what other rooms import of a room: modules and packages directly inside it."""
    inside = f"{room}."
    return {
        each.target.removeprefix(inside).partition(".")[0]
        for (_, target), each_import in imports_between().items()
        if target == room
        for each in each_import
        if each.target.startswith(inside)
    }


def rooms_below(room: str) -> set[str]:
    """Return the rooms that a room imports: those of its own package by their short names."""
    parent = room.rpartition(".")[0]
    found = set()
    for source, target in imports_between():
        if source != room:
            continue
        if parent and target.rpartition(".")[0] == parent:
            found.add(target.rpartition(".")[2])
        elif target.startswith(f"{room}.") or not target:
            continue
        else:
            found.add(_outer(target, parent))
    return found - {room}


def _outer(target: str, parent: str) -> str:
    """Return the target without what is below its first difference to the parent."""
    parts, own = target.split("."), parent.split(".") if parent else []
    same = 0
    while same < min(len(parts), len(own)) and parts[same] == own[same]:
        same += 1
    return ".".join(parts[: same + 1])


def tree() -> str:
    """Return the rooms as the tree of docs/architecture.md: a line each, indented by depth."""
    return "\n".join(_branch(""))


def _branch(container: str) -> Iterator[str]:
    for room in ROOMS.values():
        if room.name == "manage" or room.name.rpartition(".")[0] != container:
            continue
        is_package = PATHS.get(room.name, "").endswith("/__init__.py")
        short = room.name.rpartition(".")[2] + ("/" if is_package else ".py")
        yield f"{'  ' * room.name.count('.') + short:<21} {room.sentence}"
        yield from _branch(room.name)
