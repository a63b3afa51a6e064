"""The command's beginning and end: arguments, errors, exit status."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Sequence

import zonal
from zonal.cli import failures, terminal
from zonal.cli.configuration import UsageError

# What the package's extra `cli` installs; the library needs none of it.
EXTRA = ("click", "prompt_toolkit", "pygments", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        # What a statement changed is done: a character that the terminal lacks is no failure.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Before anything runs: a result that cannot be shown is too late.
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        _complain(f"{', '.join(missing)} {verb} missing: run `pip install 'zonal[cli]'`.")
        return failures.CALLED_WRONGLY
    return _run(sys.argv[1:] if arguments is None else list(arguments))


def _run(arguments: list[str]) -> int:
    """Run a command, or answer a shell that asks for completions."""
    # httpx loads Rich for a command of its own where click is installed: a quarter of our time.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    # Here, because the library is installed without it.
    import click  # noqa: PLC0415
    from click.shell_completion import shell_complete  # noqa: PLC0415

    from zonal.cli.commands import COMPLETE, top  # noqa: PLC0415

    if instruction := os.environ.get(COMPLETE):
        return shell_complete(top, {}, "zonal", COMPLETE, instruction)
    try:
        with top.make_context("zonal", arguments) as context:
            top.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except (KeyboardInterrupt, EOFError):
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
        if "ZONAL_DEBUG" in os.environ:
            raise
        _complain(
            f"This is a mistake in the command itself ({type(exc).__name__}). "
            "ZONAL_DEBUG=1 shows where."
        )
        return failures.REFUSED
    return 0


def _complain(text: str) -> None:
    terminal.say(f"zonal: {text}")
