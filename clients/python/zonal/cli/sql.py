"""`zonal sql`: statements from arguments, files, the standard input or a prompt."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Optional

from zonal.cli import results
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.prompt import Prompt


def sql(context: Context, arguments: Namespace) -> None:
    """Run what is given, or open a prompt."""
    texts = _texts(arguments)
    output = "json" if context.is_json else "csv" if arguments.csv else "table"
    with context.client() as client:
        if texts is None:
            Prompt(client, context.environ).run()
            return
        for text in [*texts, *(arguments.param or [])]:
            _check(text)
        for text in texts:
            results.run(client, text, arguments.param, output=output, read_only=arguments.read_only)


def _texts(arguments: Namespace) -> Optional[list[str]]:
    """Return the texts to run, None for a prompt."""
    if arguments.command and arguments.file:
        raise UsageError("Use -c or -f, not both.")
    if arguments.command:
        return list(arguments.command)
    if arguments.file:
        return [_read(path) for path in arguments.file]
    if sys.stdin.isatty():
        return None
    return [sys.stdin.read()]


def _check(text: str) -> None:
    """Refuse bytes of an argument or the input that are no characters."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("An argument is not UTF-8 text.") from exc


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise UsageError(f"{path} is not UTF-8 text.") from exc
    except OSError as exc:
        raise UsageError(f"{path} cannot be read: {exc.strerror}.") from exc
