"""The SQL prompt: statements end with a semicolon, commands begin with a backslash."""

import os
import re
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import zonal
from zonal.cli import describe, results, terminal
from zonal.cli.configuration import UsageError, history_of
from zonal.cli.failures import message_of
from zonal.cli.scanner import is_complete

HISTORY_LINES = 2000
# In place of a line break within a statement, as in psql's file: an entry is a line there.
LINE_BREAK = "\x01"
# What names a secret stays out of the history.
SECRET = re.compile(r"password|secret|token|encrypt|crypt\(", re.IGNORECASE)
HELP = """\\d               tables and views
\\d NAME          columns, keys and indexes of one
\\dn \\df \\dT \\dx  schemas, functions, types, extensions
\\x               one column a line, on and off
\\timing          show how long statements took, on and off
\\q               quit
A statement ends with a semicolon; each is a transaction of its own. Ctrl-C cancels it."""


class Prompt:
    """One conversation."""

    def __init__(self, client: zonal.Client, environ: Mapping[str, str]) -> None:
        """Talk through a client."""
        self._client = client
        self._history = history_of(environ)
        self._is_expanded = False
        self._is_timed = False

    def run(self) -> None:
        """Read and run statements until the end of input."""
        place = self._client.whoami()
        terminal.say(
            f"{place.organization}, environment {place.environment.name}, "
            f"{', '.join(place.roles)}. \\? shows the commands."
        )
        name = terminal.safe(place.environment.name)
        with _History(self._history):
            text = ""
            while True:
                try:
                    line = input(f"{name}{'-> ' if text else '=> '}")
                except KeyboardInterrupt:
                    terminal.write("^C")
                    text = ""
                    continue
                except EOFError:
                    terminal.write("")
                    return
                text = f"{text}\n{line}" if text else line
                if text.lstrip().startswith("\\"):
                    if not self._command(text.strip()):
                        return
                    text = ""
                elif is_complete(text):
                    _remember(text)
                    self._statement(text)
                    text = ""
                elif not text.strip():
                    text = ""

    def _statement(self, text: str) -> None:
        began = time.monotonic()
        try:
            answer = self._client.sql.query(text, rows="arrays")
            results.show(answer, is_expanded=self._is_expanded)
        except (zonal.ZonalError, ValueError) as exc:
            # The client refuses a text with bytes that are no characters.
            terminal.say(message_of(exc, text))
        except KeyboardInterrupt:
            # The closed connection cancels the statement.
            terminal.say("Cancelled.")
        if self._is_timed:
            terminal.say(f"{(time.monotonic() - began) * 1000:.0f} ms")

    def _command(self, text: str) -> bool:
        """Run a backslash command; return False to quit."""
        command, _, argument = text.partition(" ")
        argument = argument.strip().rstrip(";")
        if command == "\\q":
            return False
        if command == "\\x":
            self._is_expanded = not self._is_expanded
            terminal.say(f"One column a line: {_state(self._is_expanded)}.")
        elif command == "\\timing":
            self._is_timed = not self._is_timed
            terminal.say(f"Timing: {_state(self._is_timed)}.")
        elif command in describe.COMMANDS:
            try:
                describe.COMMANDS[command](self._client, argument)
            except (zonal.ZonalError, UsageError) as exc:
                terminal.say(message_of(exc))
        else:
            terminal.write(HELP)
        return True


class _History:
    """Readline with the statements of earlier conversations, in a file of the user alone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        # Absent on Windows.
        with suppress(ImportError):
            import readline  # noqa: PLC0415 - it changes how input() works

            readline.set_auto_history(False)
            readline.set_history_length(HISTORY_LINES)
            with suppress(OSError):
                readline.read_history_file(self._path)
            _replace_in_history(LINE_BREAK, "\n")

    def __exit__(self, *_: object) -> None:
        with suppress(ImportError, OSError):
            import readline  # noqa: PLC0415 - as above

            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
            _replace_in_history("\n", LINE_BREAK)
            readline.write_history_file(self._path)


def _replace_in_history(old: str, new: str) -> None:
    import readline  # noqa: PLC0415 - there already

    for index in range(readline.get_current_history_length()):
        # Items are read from 1 and replaced from 0.
        entry = readline.get_history_item(index + 1)
        if old in entry:
            readline.replace_history_item(index, entry.replace(old, new))


def _state(is_on: bool) -> str:
    return "on" if is_on else "off"


def _remember(text: str) -> None:
    # One with the file's line break would be another statement when it comes back.
    if SECRET.search(text) or LINE_BREAK in text or "readline" not in sys.modules:
        return
    import readline  # noqa: PLC0415 - there already

    readline.add_history(text)
