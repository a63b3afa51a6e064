"""`zonal import`: the rows of a CSV file into a table."""

import csv
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Union

from zonal.cli.configuration import UsageError
from zonal.cli.context import Context

HEADERS: dict[str, Union[bool, Literal["match"]]] = {"match": "match", "skip": True, "none": False}


def run(context: Context, arguments: Namespace) -> None:
    """Put all rows into the table, or none."""
    tab = arguments.delimiter == "tab"
    columns = next(csv.reader([arguments.columns])) if arguments.columns else None
    with _regular(arguments.file) as source, context.client() as client:
        done = client.sql.import_csv(
            arguments.table,
            source,
            columns=columns,
            header=HEADERS[arguments.header],
            delimiter="\t" if tab else arguments.delimiter,
            is_gzip=arguments.file.endswith(".gz"),
        )
    rows = "1 row" if done.row_count == 1 else f"{done.row_count} rows"
    context.done(f"Imported {rows} into {arguments.table}.", done)


@contextmanager
def _regular(name: str) -> Iterator[Path]:
    """Yield a file that can be sent a second time: the standard input is written to one first."""
    if name != "-":
        if not Path(name).is_file():
            raise UsageError(f"{name} is no file.")
        yield Path(name)
        return
    with tempfile.NamedTemporaryFile(prefix="zonal-") as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.flush()
        yield Path(kept.name)
