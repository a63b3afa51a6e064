"""`zonal import`: the rows of a CSV file into a table."""

from argparse import Namespace
from typing import Literal, Optional, Union

from zonal.cli import failures, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.identifiers import parts_of
from zonal.cli.sources import regular

HEADERS: dict[str, Union[bool, Literal["match"]]] = {"match": "match", "skip": True, "none": False}


def run(context: Context, arguments: Namespace) -> None:
    """Put all rows into the table, or none."""
    tab = arguments.delimiter == "tab"
    columns, skip = _names(arguments.columns), _names(arguments.skip)
    given = arguments.file
    with (
        regular(given) as source,
        context.client() as client,
        failures.about(given),
        terminal.progress(given, source.stat().st_size) as on_sent,
    ):
        done = client.sql.import_csv(
            arguments.table,
            source,
            columns=columns,
            skip=skip,
            header=HEADERS[arguments.header],
            delimiter="\t" if tab else arguments.delimiter,
            is_gzip=given.endswith(".gz"),
            on_sent=on_sent,
        )
    rows = "1 row" if done.row_count == 1 else f"{done.row_count} rows"
    for notice in done.notices:
        failures.say_notice(notice)
    context.done(f"Imported {rows} into {arguments.table}.", done)


def _names(text: Optional[str]) -> Optional[list[str]]:
    """Return the names of columns as SQL reads them. Raises UsageError."""
    if text is None:
        return None
    names = parts_of(text, ",")
    if names is None:
        raise UsageError(f'--columns {text} are no names as in SQL, such as id,"Full name".')
    return names
