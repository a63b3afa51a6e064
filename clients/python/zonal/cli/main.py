"""The command's beginning and end: arguments, errors, exit status."""

import importlib.util
import io
import os
import sys
from collections.abc import Sequence
from typing import Optional

import zonal
from zonal.cli import failures, terminal
from zonal.cli.arguments import parser
from zonal.cli.configuration import UsageError, credentials_of
from zonal.cli.context import Context

# What the package's extra `cli` installs; the library needs none of it.
EXTRA = ("prompt_toolkit", "pygments", "rich")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        # What a statement changed is done: a character that the terminal lacks is no failure.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Before anything runs: a result that cannot be shown is too late.
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        _complain(f"{', '.join(missing)} is missing: run `pip install 'zonal[cli]'`.")
        return failures.CALLED_WRONGLY
    given = parser().parse_args(arguments)
    environ = dict(os.environ)
    context = Context(
        credentials=credentials_of(environ),
        environ=environ,
        url=getattr(given, "url", None) or environ.get("ZONAL_URL"),
        is_json=getattr(given, "json", False),
    )
    try:
        given.run(context, given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return failures.INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has enough. Python would complain again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (zonal.ZonalError, UsageError, failures.FileError, OSError) as exc:
        _complain(failures.message_of(exc))
        return failures.status_of(exc)
    except Exception as exc:
        # A traceback is no help at a prompt, and may hold secrets.
        if "ZONAL_DEBUG" in environ:
            raise
        _complain(
            f"This is a mistake in the command itself ({type(exc).__name__}). "
            "ZONAL_DEBUG=1 shows where."
        )
        return failures.REFUSED
    return 0


def _complain(text: str) -> None:
    terminal.say(f"zonal: {text}")
