"""`zonal sql`: statements from arguments, files, the standard input or a prompt."""

import sys
from argparse import Namespace
from typing import Optional

from zonal.cli import failures, results
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.sources import text_of

BYTE_ORDER_MARK = "\ufeff"


def sql(context: Context, arguments: Namespace) -> None:
    """Run what is given, or open a prompt."""
    texts = _texts(arguments)
    output = "json" if context.is_json else "csv" if arguments.csv else "table"
    with context.client() as client:
        if texts is None:
            # Its libraries take longer to load than most statements to run.
            from zonal.cli.prompt import Prompt  # noqa: PLC0415

            Prompt(client, context.environ).run()
            return
        for text in [*(text for _, text in texts), *(arguments.param or [])]:
            _check(text)
        for name, text in texts:
            with failures.about(name, text):
                results.run(
                    client, text, arguments.param, output=output, read_only=arguments.read_only
                )


def _texts(arguments: Namespace) -> Optional[list[tuple[str, str]]]:
    """Return the texts to run with their files' names, None for a prompt."""
    if arguments.command and arguments.file:
        raise UsageError("Use -c or -f, not both.")
    if arguments.command:
        return [("", text.removeprefix(BYTE_ORDER_MARK)) for text in arguments.command]
    if arguments.file:
        return [(path, text_of(path)) for path in arguments.file]
    if sys.stdin.isatty():
        return None
    return [("-", text_of("-"))]


def _check(text: str) -> None:
    """Refuse bytes of an argument that are no characters."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("An argument is not UTF-8 text.") from exc
