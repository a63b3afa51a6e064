"""`zonal sql`: statements from arguments, files, the standard input or a prompt."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from zonal.cli import failures, results
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.parameters import Command
from zonal.cli.sources import text_of

BYTE_ORDER_MARK = "\ufeff"


@click.command("sql", cls=Command)
@click.option("-c", "--command", "commands", multiple=True, metavar="SQL", help="may be repeated")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="- for stdin",
)
@click.option("-p", "--param", "params", multiple=True, metavar="VALUE", help="of $1, $2, …")
@click.option("--csv", "is_csv", is_flag=True, help="rows of any number as CSV")
@click.option("--read-only", is_flag=True, help="refuse to change anything")
def sql(
    context: Context,
    commands: tuple[str, ...],
    files: tuple[str, ...],
    params: tuple[str, ...],
    is_csv: bool,
    read_only: bool,
) -> None:
    """Run SQL, or open a prompt."""
    texts = _texts(commands, files)
    output = "json" if context.is_json else "csv" if is_csv else "table"
    with context.client() as client:
        if texts is None:
            # Its libraries take longer to load than most statements to run.
            from zonal.cli.prompt import Prompt  # noqa: PLC0415

            Prompt(client, context.environ).run()
            return
        for text in [*(text for _, text in texts), *params]:
            _check(text)
        for name, text in texts:
            with failures.about(name, text):
                results.run(client, text, params or None, output=output, read_only=read_only)


def _texts(commands: Sequence[str], files: Sequence[str]) -> list[tuple[str, str]] | None:
    """Return the texts to run with their files' names, None for a prompt."""
    if commands and files:
        raise UsageError("Use -c or -f, not both.")
    if commands:
        return [("", text.removeprefix(BYTE_ORDER_MARK)) for text in commands]
    if files:
        return [(path, text_of(path)) for path in files]
    if sys.stdin.isatty():
        return None
    return [("-", text_of("-"))]


def _check(text: str) -> None:
    """Refuse bytes of an argument that are no characters."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("An argument is not UTF-8 text.") from exc
