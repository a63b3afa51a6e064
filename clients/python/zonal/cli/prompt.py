"""The SQL prompt: statements end with a semicolon, commands begin with a backslash."""

import contextlib
import io
import os
import pydoc
import re
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import create_output
from prompt_toolkit.validation import Validator
from pygments.lexers.sql import PostgresLexer

import zonal
from zonal.cli import describe, results, terminal
from zonal.cli.configuration import UsageError, history_of
from zonal.cli.failures import message_of
from zonal.cli.names import Names
from zonal.cli.scanner import is_complete

# What names a secret stays out of the history's file.
SECRET = re.compile(r"password|secret|token|encrypt|crypt\(", re.IGNORECASE)
# What may change the names that Tab completes.
CHANGES = ("CREATE", "ALTER", "DROP", "COMMENT", "SELECT INTO")
HELP = """\\d               tables and views
\\d NAME          columns, keys and indexes of one
\\dn \\df \\dT \\dx  schemas, functions, types, extensions
\\x               one column a line, on and off
\\timing          show how long statements took, on and off
\\q               quit
A statement ends with a semicolon; several that are sent together are one transaction.
Tab completes names, Up and Down recall statements. Ctrl-C discards or cancels a statement."""


class Prompt:
    """One conversation."""

    def __init__(self, client: zonal.Client, environ: Mapping[str, str]) -> None:
        """Talk through a client."""
        self._client = client
        self._names = Names(client)
        self._history = History(history_of(environ))
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
        session: PromptSession[str] = PromptSession(
            f"{name}=> ",
            multiline=True,
            prompt_continuation=f"{name}-> ",
            key_bindings=_keys(),
            # Other keys than Enter send a text, too.
            validator=Validator.from_callable(_is_whole, "The statement is not complete."),
            validate_while_typing=False,
            lexer=PygmentsLexer(PostgresLexer),
            completer=self._names,
            complete_while_typing=False,
            history=self._history,
            output=create_output(always_prefer_tty=True),
        )
        while True:
            try:
                text = session.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if _is_command(text):
                if not self._command(text.strip()):
                    return
            elif text.strip():
                self._statement(text)

    def _statement(self, text: str) -> None:
        began = time.monotonic()
        request_id = str(uuid.uuid4())
        try:
            answer = self._client.sql.query(text, rows="arrays", request_id=request_id)
            with _paged():
                results.show(answer, is_expanded=self._is_expanded)
            if answer.command.startswith(CHANGES) or answer.results:
                self._names.forget()
        except (zonal.ZonalError, UsageError, ValueError) as exc:
            # The client refuses a text with bytes that are no characters.
            terminal.say(message_of(exc, text))
        except KeyboardInterrupt:
            # By its id: what is between here and the platform may keep the connection open.
            with contextlib.suppress(zonal.ZonalError, KeyboardInterrupt):
                self._client.sql.cancel(request_id)
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
                with _paged():
                    describe.COMMANDS[command](self._client, argument)
            except (zonal.ZonalError, UsageError) as exc:
                terminal.say(message_of(exc))
        else:
            terminal.write(HELP)
        return True


class History(FileHistory):
    """The statements of earlier conversations, in a file that its owner alone can read."""

    def __init__(self, path: Path) -> None:
        """Use a file, which need not exist."""
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        super().__init__(str(path))

    def store_string(self, string: str) -> None:
        """Keep a statement for the next conversation, unless it may hold a secret."""
        if SECRET.search(string) or string.strip() == "\\q":
            return
        # A full disk, or bytes that are no characters, are no reason to end the conversation.
        with contextlib.suppress(OSError, UnicodeEncodeError):
            super().store_string(string)


class _Page(io.StringIO):
    """What is to be shown on the terminal."""

    encoding = sys.__stdout__.encoding if sys.__stdout__ else "utf-8"

    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def _paged() -> Iterator[None]:
    """Show what is written meanwhile, by the user's pager if the terminal has too few lines."""
    if not sys.stdout.isatty():
        yield
        return
    page = _Page()
    with contextlib.redirect_stdout(page), contextlib.redirect_stderr(page):
        yield
    text = page.getvalue()
    if text.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(text)
    else:
        pydoc.pager(text)


def _keys() -> KeyBindings:
    """Return the binding of Enter: it sends what is whole, and begins a line otherwise."""
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _is_whole(text: str) -> bool:
    return not text.strip() or _is_command(text) or is_complete(text)


def _is_command(text: str) -> bool:
    return text.lstrip().startswith("\\")


def _state(is_on: bool) -> str:
    return "on" if is_on else "off"
