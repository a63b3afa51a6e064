"""The prompt's commands that show what a database holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import zonal
from zonal.cli import terminal
from zonal.cli.configuration import UsageError
from zonal.cli.identifiers import parts_of

if TYPE_CHECKING:
    from zonal.types import TableShape

KINDS = {"primary_key": "PRIMARY KEY", "foreign_key": "FOREIGN KEY"}


def relations(client: zonal.Client, name: str) -> None:
    """Show tables and views, or one of them."""
    tables = client.sql.schema().tables
    if not name:
        _table(
            ["schema", "name", "kind", "rows, about", "size"],
            [
                (
                    each.schema,
                    each.name,
                    each.kind.replace("_", " "),
                    each.estimated_rows,
                    size(each.size_bytes),
                )
                for each in tables
            ],
        )
        return
    *schema, bare = parts_of(name, ".") or [name]
    found = [each for each in tables if each.name == bare and schema in ([], [each.schema])]
    if not found:
        raise UsageError(f"There is no table or view {name} that you may see.")
    for each in found:
        _relation(each)


def schemas(client: zonal.Client, _name: str) -> None:
    """Show schemas."""
    _table(
        ["schema", "comment"], [(each.name, each.comment) for each in client.sql.schema().schemas]
    )


def functions(client: zonal.Client, _name: str) -> None:
    """Show functions."""
    _table(
        ["schema", "name", "arguments", "returns", "kind"],
        [
            (each.schema, each.name, each.arguments, each.returns, each.kind)
            for each in client.sql.schema().functions
        ],
    )


def types(client: zonal.Client, _name: str) -> None:
    """Show types."""
    _table(
        ["schema", "name", "kind", "of"],
        [
            (each.schema, each.name, each.kind, each.labels or each.base_type)
            for each in client.sql.schema().types
        ],
    )


def extensions(client: zonal.Client, _name: str) -> None:
    """Show installed extensions."""
    _table(
        ["name", "version", "schema"],
        [(each.name, each.version, each.schema) for each in client.sql.schema().extensions],
    )


def size(count: int) -> str:
    """Return bytes as people read them."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def _relation(found: TableShape) -> None:
    title = f"{found.kind.replace('_', ' ')} {found.schema}.{found.name}"
    terminal.write(terminal.bold(terminal.safe(title), sys.stdout))
    _table(
        ["column", "type", "null", "default"],
        [
            (
                each.name,
                each.type,
                each.is_nullable,
                each.default or each.generated or each.identity,
            )
            for each in found.columns
        ],
    )
    for constraint in found.constraints:
        terminal.write(terminal.safe(f"  {constraint.name}: {constraint.definition}"))
    for index in found.indexes:
        terminal.write(terminal.safe(f"  {index.definition}"))
    if found.definition:
        terminal.write(terminal.safe(f"  {' '.join(found.definition.split())}"))


def _table(columns: list[str], rows: list[Any]) -> None:
    terminal.table(columns, rows, out=sys.stdout)


COMMANDS: dict[str, Callable[[zonal.Client, str], None]] = {
    "\\d": relations,
    "\\dt": relations,
    "\\dn": schemas,
    "\\df": functions,
    "\\dT": types,
    "\\dx": extensions,
}
