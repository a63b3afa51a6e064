"""Attacks as data: the requests of a tenant, and the expected outcomes.

A file of attacks/ holds groups (one statement or two for each row) and sequences (any steps):

    [[group]]
    reason = "..."            # why it must not work
    role = "admin"            # the sender: admin, operator or reader
    expect = "42501"          # the outcome of rows without one
    is_harmless = true        # the default: it may run on a server in production
    also_reader = false       # run it as a reader as well, which must be refused with any error
    prefix, suffix, options   # around each first statement; members of its request
    fresh = false             # the second statement of a row runs on a new session
    statements = [
      ["SET ROLE x"],
      ["SET ROLE y", "42501 42704"],                  # a statement and its outcome
      ["SET x = 1", "SHOW x", "= 0"],                 # what the next request must return
      ["SET x = 1", "SHOW x", "= 0", "42704"],        # the first one may fail as well
    ]

    [[sequence]]
    name, role, reason, is_harmless, options
    steps = [{ sql, expect, as, tenant, params, fresh }]

Outcomes: ``ok``; one of several SQLSTATEs or problem codes; ``= text`` for the only value of the
answer; a list of alternatives. ``refused`` is any error that is the statement's own fault.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from common.permissions import Role

FOLDER: Final = Path(__file__).with_name("attacks")
VALUE: Final = "= "
REFUSED: Final = "refused"
# Before a reader's statement: a reader can turn its read-only transactions off.
AS_READER: Final = "SET default_transaction_read_only = off; "


@dataclass(frozen=True, slots=True)
class AttackStep:
    """One request.

    expect: outcomes, one of which must occur.
    of_other: the other tenant sends it.
    is_fresh: it runs on a new session.
    options: more members of the request, such as ``params``.
    """

    role: Role
    sql: str
    expect: tuple[str, ...]
    of_other: bool = False
    is_fresh: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attack:
    """A sequence of requests, with the reason why its outcome matters."""

    subject: str
    name: str
    role: Role
    reason: str
    is_harmless: bool
    steps: tuple[AttackStep, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a request.

    outcomes: ``ok``, or an SQLSTATE and a problem code.
    value: the only value of the answer, as text.
    """

    outcomes: frozenset[str]
    value: str | None = None

    def is_one_of(self, expected: tuple[str, ...]) -> bool:
        """True if one of the expected outcomes occurred."""
        return any(
            "ok" in self.outcomes and self.value == one.removeprefix(VALUE)
            if one.startswith(VALUE)
            else one in self.outcomes
            for one in expected
        )


def subjects() -> list[str]:
    """Return the names of the files."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(subject: str) -> list[Attack]:
    """Return the attacks of a file."""
    data = tomllib.loads((FOLDER / f"{subject}.toml").read_text("utf-8"))
    found = [attack for group in data.get("group", []) for attack in _of_group(subject, group)]
    return found + [_of_sequence(subject, sequence) for sequence in data.get("sequence", [])]


def filled(text: str, names: Mapping[str, str]) -> str:
    """Replace placeholders such as ``<own_db>`` by names of databases and roles."""
    for name, value in names.items():
        text = text.replace(f"<{name}>", value)
    return text


def _of_group(subject: str, group: dict[str, Any]) -> Iterator[Attack]:
    role = cast("Role", group["role"])
    is_harmless = group.get("is_harmless", True)
    for row in group["statements"]:
        steps = tuple(_steps_of_row(role, group, row))
        yield Attack(subject, steps[0].sql, role, group["reason"], is_harmless, steps)
        if group.get("also_reader"):
            again = AttackStep("reader", AS_READER + row[0], (REFUSED,))
            yield Attack(subject, again.sql, "reader", group["reason"], is_harmless, (again,))


def _steps_of_row(role: Role, group: dict[str, Any], row: list[Any]) -> Iterator[AttackStep]:
    sql = group.get("prefix", "") + row[0] + group.get("suffix", "")
    options = group.get("options", {})
    if len(row) <= 2:
        expect = row[1] if len(row) == 2 else group["expect"]
        yield AttackStep(role, sql, _outcomes(expect), options=options)
        return
    yield AttackStep(role, sql, ("ok", *row[3:]), options=options)
    yield AttackStep(role, row[1], _outcomes(row[2]), is_fresh=group.get("fresh", False))


def _of_sequence(subject: str, sequence: dict[str, Any]) -> Attack:
    role = cast("Role", sequence["role"])
    options = sequence.get("options", {})
    steps = tuple(
        AttackStep(
            step.get("as", role),
            step["sql"],
            _outcomes(step["expect"]),
            of_other=step.get("tenant") == "other",
            is_fresh=step.get("fresh", False),
            options=options | {name: step[name] for name in ("params",) if name in step},
        )
        for step in sequence["steps"]
    )
    is_harmless = sequence.get("is_harmless", True)
    return Attack(subject, sequence["name"], role, sequence["reason"], is_harmless, steps)


def _outcomes(expect: str | list[str]) -> tuple[str, ...]:
    alternatives = expect if isinstance(expect, list) else [expect]
    return tuple(
        outcome
        for text in alternatives
        for outcome in ([text] if text.startswith(VALUE) else text.split())
    )
