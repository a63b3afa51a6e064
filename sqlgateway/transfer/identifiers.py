"""Parse and quote names of tables and columns.

The server gets only names that were parsed from the caller's text, and quoted again, so that a name
cannot end the statement that contains it.
"""

import re
from collections.abc import Sequence
from typing import Final

from common.errors import InvalidRequest

# NAMEDATALEN - 1: PostgreSQL would truncate a longer name, which may be another table's.
MAX_BYTES: Final = 63
# An identifier with its quotes, or a bare one, as PostgreSQL's lexer reads them (scan.l).
IDENTIFIER: Final = re.compile(
    r'\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<bare>[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*))\s*'
)
UPPER: Final = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def parse(text: str, *, separator: str, field: str) -> tuple[str, ...]:
    """Return the names in a text such as ``public.Items`` or ``id,"Full name"``.

    Bare names are folded to lower case (A to Z only), as PostgreSQL does.
    Raises InvalidRequest with the name of the field.
    """
    names: list[str] = []
    at = 0
    while True:
        found = IDENTIFIER.match(text, at)
        if found is None:
            raise InvalidRequest.for_field(field, f"No name at character {at + 1}.")
        names.append(_name(found, field))
        at = found.end()
        if at == len(text):
            return tuple(names)
        if text[at] != separator:
            raise InvalidRequest.for_field(field, f"Unexpected character {at + 1}.")
        at += 1


def _name(found: re.Match[str], field: str) -> str:
    quoted = found["quoted"]
    name: str = found["bare"].translate(UPPER) if quoted is None else quoted.replace('""', '"')
    if "\0" in name:
        raise InvalidRequest.for_field(field, "A name holds no NUL character.", code="nul")
    if len(name.encode()) > MAX_BYTES:
        raise InvalidRequest.for_field(field, f"A name has at most {MAX_BYTES} bytes.")
    return name


def quote(names: Sequence[str], *, separator: str) -> str:
    """Return the names for an SQL statement, each in quotes."""
    return separator.join('"{}"'.format(name.replace('"', '""')) for name in names)
