"""The text of the source: drawings match the code, literals are written as such."""

import ast
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"[├└]── (\w*)")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module of the repository, by path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = listed.stdout.split("\0")[:-1]
    return {path: ast.parse((ROOT / path).read_text()) for path in paths}


MODULES = modules()
WITH_TREES = [
    path for path, module in MODULES.items() if ENTRY.search(ast.get_docstring(module) or "")
]


def drawn_bases(docstring: str) -> dict[str, str]:
    """Return the name above each name of a drawn tree; above its root is Exception."""
    bases: dict[str, str] = {}
    branch: list[tuple[int, str]] = []
    for before, line in pairwise(docstring.splitlines()):
        if not (entry := ENTRY.search(line)):
            continue
        if not branch:
            branch.append((-1, before.strip()))
            bases[before.strip()] = "Exception"
        while branch[-1][0] >= entry.start():
            branch.pop()
        bases[entry[1]] = branch[-1][1]
        branch.append((entry.start(), entry[1]))
    return bases


def test_a_line_of_a_docstring_draws_one_entry() -> None:
    lines = [
        f"{path}: {line}"
        for path, module in MODULES.items()
        for node in ast.walk(module)
        if isinstance(node, DOCUMENTED)
        for line in (ast.get_docstring(node) or "").splitlines()
        if len(ENTRY.findall(line)) > 1
    ]
    assert lines == []


@pytest.mark.parametrize("path", WITH_TREES)
def test_a_tree_of_errors_has_the_classes_of_its_module(path: str) -> None:
    drawn = drawn_bases(ast.get_docstring(MODULES[path]) or "")
    defined = {
        node.name: ast.unparse(node.bases[0]).rpartition(".")[2]
        for node in MODULES[path].body
        if isinstance(node, ast.ClassDef) and node.bases
    }
    assert {name: drawn.get(name) for name in defined} == defined
    # Names from other modules are drawn only above these.
    assert drawn.keys() - defined.keys() <= set(drawn.values())


def test_a_literal_is_not_unpacked_where_its_elements_can_be_written() -> None:
    """The formatter does not reach into ``*("a", "b")``."""
    places = [
        f"{path}:{node.lineno}"
        for path, module in MODULES.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Starred) and isinstance(node.value, (ast.Tuple, ast.List, ast.Set))
    ]
    assert places == []
