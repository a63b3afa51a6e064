"""Shared by the cache's commands: the choice of the environment, decisions, and tables."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any, Final

from audit import trail
from common.principals import Scope
from edgecache.api import nodes
from edgecache.api.audit_tags import CacheTag
from environments import environments

DECISION_TAGS: Final = {
    "approve": CacheTag.CLI_NODE_APPROVE,
    "quarantine": CacheTag.CLI_NODE_QUARANTINE,
    "drain": CacheTag.CLI_NODE_DRAIN,
    "remove": CacheTag.CLI_NODE_DELETE,
}


def decide(node_id: str, decision: str) -> None:
    """Carry out an operator's decision about a node, and record it. Raises NodeNotFound."""
    node = nodes.read(node_id)
    if decision == "remove":
        nodes.discard(node_id)
    else:
        nodes.decide(node_id, decision)
    trail.add(
        None,
        DECISION_TAGS[decision],
        organization_id=node["organization_id"],
        actor="command",
        data={"node_id": node["node_id"]},
    )


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
    environment = environments.find(options["organization"], options["environment"])
    return Scope(options["organization"], environment.pk)


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
