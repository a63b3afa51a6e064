"""The text of the source: drawings match the code, literals are written as such."""

import ast
import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"[├└]── (\w*)")
UNPACKED = re.compile(r"\*[ \n]*[(\[{]")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def texts() -> dict[str, str]:
    """Return the text of every module of the repository, by path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return {path: (ROOT / path).read_text() for path in listed.stdout.split("\0")[:-1]}


def modules(pattern: re.Pattern[str]) -> dict[str, ast.Module]:
    """Return the syntax tree of the modules whose text has a pattern, by path."""
    return {path: ast.parse(text) for path, text in texts().items() if pattern.search(text)}


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
        for path, module in modules(ENTRY).items()
        for node in ast.walk(module)
        if isinstance(node, DOCUMENTED)
        for line in (ast.get_docstring(node) or "").splitlines()
        if len(ENTRY.findall(line)) > 1
    ]
    assert lines == []


def test_a_tree_of_errors_has_the_classes_of_its_module() -> None:
    for path, module in modules(ENTRY).items():
        docstring = ast.get_docstring(module) or ""
        if not ENTRY.search(docstring):
            continue
        drawn = drawn_bases(docstring)
        defined = {
            node.name: ast.unparse(node.bases[0]).rpartition(".")[2]
            for node in module.body
            if isinstance(node, ast.ClassDef) and node.bases
        }
        assert {name: drawn.get(name) for name in defined} == defined, path
        # Names from other modules are drawn only above these.
        assert drawn.keys() - defined.keys() <= set(drawn.values()), path


def test_a_literal_is_not_unpacked_where_its_elements_can_be_written() -> None:
    """The formatter does not reach into ``*("a", "b")``."""
    places = [
        f"{path}:{node.lineno}"
        for path, module in modules(UNPACKED).items()
        for node in ast.walk(module)
        if isinstance(node, ast.Starred) and isinstance(node.value, (ast.Tuple, ast.List, ast.Set))
    ]
    assert places == []
