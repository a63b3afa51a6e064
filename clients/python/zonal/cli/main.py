"""The command's beginning and end: arguments, errors, exit status."""

import os
import sys
from collections.abc import Sequence
from typing import Optional

import zonal
from zonal.cli import failures, terminal
from zonal.cli.arguments import parser
from zonal.cli.configuration import UsageError, credentials_of
from zonal.cli.context import Context


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; return its exit status."""
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
    except (zonal.ZonalError, UsageError, OSError) as exc:
        _complain(failures.message_of(exc, _only_text(given)))
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


def _only_text(given: object) -> Optional[str]:
    """Return the SQL that an error is about, if there is one text only."""
    texts = getattr(given, "command", None) or []
    return texts[0] if len(texts) == 1 else None
