"""What `COPY . .` takes of a build context, by the rules of a .dockerignore.

Docker's rules: Go's filepath.Match for each part of a path, `**` for any number of parts, the last
rule that matches a path or one of its folders decides, `!` takes back in.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Rule:
    """One line. ignores: False for a line with `!`."""

    pattern: re.Pattern[str]
    ignores: bool


def rules(text: str) -> list[Rule]:
    """Return the rules of a .dockerignore."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        glob = line.strip().removeprefix("!").strip("/")
        found.append(Rule(re.compile(_expression(glob)), ignores=not line.startswith("!")))
    return found


def taken(paths: Iterable[str], given: list[Rule]) -> list[str]:
    """Return those of the paths that a build takes into its context."""
    return [path for path in paths if not _is_ignored(path, given)]


def _is_ignored(path: str, given: list[Rule]) -> bool:
    own = [path, *(str(parent) for parent in PurePosixPath(path).parents if parent.name)]
    ignored = False
    for rule in given:
        if rule.ignores != ignored and any(rule.pattern.fullmatch(each) for each in own):
            ignored = rule.ignores
    return ignored


def _expression(glob: str) -> str:
    parts = re.split(r"(\*\*/?|\*|\?)", glob)
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meanings.get(part, re.escape(part)) for part in parts)
