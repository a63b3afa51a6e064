"""Completion of names at the prompt."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Optional

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

import zonal
from zonal.cli import terminal
from zonal.cli.identifiers import KEYWORDS, quoted
from zonal.types import Schema

# The word before the cursor, with a schema or table before it.
WORD = re.compile(r'(?:(?:"[^"]*"|[\w$]+)\.)*(?:"[^"]*|[\w$]*)$')


class Names(Completer):
    """The names of the database, asked for when Tab is first pressed."""

    def __init__(self, client: zonal.Client) -> None:
        """Ask through a client."""
        self._client = client
        self._known: Optional[dict[str, str]] = None

    def forget(self) -> None:
        """Ask again: the schema may have changed."""
        self._known = None

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may stand at the cursor."""
        before = document.text_before_cursor
        found = WORD.search(before)
        word = found.group() if found else ""
        if not word:
            return
        wanted = word.replace('"', "").lower()
        for name, kind in self._all().items():
            if name.replace('"', "").lower().startswith(wanted):
                yield Completion(name, start_position=-len(word), display_meta=kind)
        for keyword in sorted(KEYWORDS):
            if keyword.startswith(word.upper()):
                shown = keyword.lower() if word.islower() else keyword
                yield Completion(shown, start_position=-len(word))

    def _all(self) -> dict[str, str]:
        """Return names and their kinds; none if the platform does not answer."""
        if self._known is None:
            self._known = {}
            with suppress(zonal.ZonalError):
                self._known = _names_of(self._client.sql.schema())
        return self._known


def _names_of(schema: Schema) -> dict[str, str]:
    found: dict[str, str] = {quoted(each.name): "schema" for each in schema.schemas}
    for table in schema.tables:
        kind = table.kind.replace("_", " ")
        found[quoted(table.name)] = kind
        found[f"{quoted(table.schema)}.{quoted(table.name)}"] = kind
        for column in table.columns or []:
            found.setdefault(quoted(column.name), "column")
            found[f"{quoted(table.name)}.{quoted(column.name)}"] = "column"
    found.update({quoted(each.name): "function" for each in schema.functions})
    found.update({quoted(each.name): "type" for each in schema.types})
    # A name that a terminal would obey is not typed in for anybody.
    return {name: kind for name, kind in sorted(found.items()) if terminal.safe(name) == name}
