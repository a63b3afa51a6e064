"""Shared by the cache's commands: the choice of the environment, and tables."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from environments import environments
from platform_site.lib.principals import Scope


def add_environment(parser: ArgumentParser) -> None:
    """Add the arguments that choose the environment."""
    parser.add_argument(
        "--organization", type=int, required=True, metavar="ID", help="Id of the organization."
    )
    parser.add_argument(
        "--environment", default="live", help="Id or name of the environment; live by default."
    )


def scope_of(options: Mapping[str, Any]) -> Scope:
    """Return the chosen environment. Raises EnvironmentNotFound."""
    place = environments.find(options["organization"], options["environment"])
    return Scope(options["organization"], place.pk)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Lay rows out in columns."""
    cells = [
        tuple(columns),
        *(tuple("" if row[name] is None else str(row[name]) for name in columns) for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )
