"""What every command gets: the platform, the client, and how to show results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import zonal
from zonal.cli import terminal
from zonal.cli.configuration import Credentials, Place, client_of, place_of


@dataclass(frozen=True)
class Context:
    """One run of the command. url: of --url or ZONAL_URL."""

    credentials: Credentials
    environ: dict[str, str]
    url: str | None
    is_json: bool

    @property
    def place(self) -> Place:
        """The platform; raises NotSignedInError if none is known."""
        return place_of(self.url, self.environ, self.credentials)

    def client(self, *, switches_to: str | None = None) -> zonal.Client:
        """Return a client that is signed in; switches_to: the environment that it goes on in."""
        return client_of(self.place, self.credentials, switches_to=switches_to)

    def show(self, answer: Any, pairs: Sequence[tuple[str, Any]]) -> None:
        """Write one thing: JSON of the answer, or names and values."""
        if self.is_json:
            terminal.write(terminal.json_text(asdict(answer)))
        else:
            terminal.fields(pairs, out=sys.stdout)

    def show_list(self, answers: Iterable[Any], columns: Sequence[str]) -> None:
        """Write a listing: a JSON array, or a table of some fields."""
        rows = [asdict(each) for each in answers]
        if self.is_json:
            terminal.write(terminal.json_text(rows))
            return
        names = [column.replace("_", " ") for column in columns]
        terminal.table(names, [[row[name] for name in columns] for row in rows], out=sys.stdout)

    def done(self, text: str, answer: Any = None) -> None:
        """Say what was done; with --json write what came of it instead."""
        if self.is_json:
            terminal.write(terminal.json_text({} if answer is None else asdict(answer)))
        else:
            terminal.say(text)
