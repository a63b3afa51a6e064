"""`zonal import`: the rows of a CSV file into a table."""

from __future__ import annotations

from typing import Literal

import click

from zonal.cli import failures, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.identifiers import parts_of
from zonal.cli.parameters import Command, argument
from zonal.cli.sources import regular

HEADERS: dict[str, bool | Literal["match"]] = {"match": "match", "skip": True, "none": False}
DELIMITERS: dict[str, Literal[",", ";", "|", "\t"]] = {
    ",": ",",
    ";": ";",
    "|": "|",
    "tab": "\t",
}


@click.command("import", cls=Command)
@argument("table", help="as in SQL: items, public.items")
@argument(
    "file",
    type=click.Path(readable=False),
    help="CSV in UTF-8, packed if it ends in .gz; - for stdin",
)
@click.option("--columns", metavar="NAME,NAME", help="of the file, in its order")
@click.option("--skip", metavar="NAME,NAME", help="of the file, not imported")
@click.option(
    "--header",
    type=click.Choice(list(HEADERS)),
    default="match",
    help="the first line names the columns, is skipped, or is a row",
)
@click.option(
    "--delimiter",
    type=click.Choice(list(DELIMITERS)),
    default=",",
    metavar="CHARACTER",
    help="between the columns: , (without it), ;, | or tab",
)
def run(
    context: Context,
    table: str,
    file: str,
    columns: str | None,
    skip: str | None,
    header: str,
    delimiter: str,
) -> None:
    """Put the rows of a CSV file into a table."""
    column_names, skipped_names = _names(columns), _names(skip)
    with (
        regular(file) as source,
        context.client() as client,
        failures.about(file),
        terminal.progress(file, source.stat().st_size) as on_sent,
    ):
        done = client.sql.import_csv(
            table,
            source,
            columns=column_names,
            skip=skipped_names,
            header=HEADERS[header],
            delimiter=DELIMITERS[delimiter],
            is_gzip=file.endswith(".gz"),
            on_sent=on_sent,
        )
    rows = "1 row" if done.row_count == 1 else f"{done.row_count} rows"
    for notice in done.notices:
        failures.say_notice(notice)
    context.done(f"Imported {rows} into {table}.", done)


def _names(text: str | None) -> list[str] | None:
    """Return the names of columns as SQL reads them. Raises UsageError."""
    if text is None:
        return None
    names = parts_of(text, ",")
    if names is None:
        raise UsageError(f'--columns {text} are no names as in SQL, such as id,"Full name".')
    return names
