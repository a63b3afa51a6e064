"""Split the text of statements into tokens, as PostgreSQL's lexer does.

PostgreSQL alone decides what a text means; this module assumes the settings that every request
begins with (standard_conforming_strings is on). Source: PostgreSQL's scan.l, documentation 4.1.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# Repetitions are possessive, and a literal without its end extends to the end of the text: any text
# of 1 MiB is read in one pass.
TOKEN: Final = re.compile(
    r"""
    (?P<blank> [ \t\n\r\f\v]++ )
    | (?P<literal>
        '[^']*+(?:''[^']*+)*+(?:'|\Z)
        # E'...' continues after a line break, also with backslash escapes.
        | [eE]'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+
          (?:'(?:[ \t\f\v]++|--[^\n\r]*+)*+[\n\r](?:[ \t\n\r\f\v]++|--[^\n\r]*+[\n\r])*+
            '[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+)*+
          (?:'|\\?\Z)
        | \$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*+)?+)\$
          .*?(?:\$(?P=tag)\$|\Z)
      )
    | (?P<word> [A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*+ )
    | (?P<end> ; )
    | (?P<comment> --[^\n\r]*+ | (?P<block>/\*) )
    | (?P<name> "[^"]*+(?:""[^"]*+)*+(?:"|\Z) )
    | (?P<other> [^ \t\n\r\f\vA-Za-z_\x80-\U0010ffff'"$;/-]++ | . )
    """,
    re.DOTALL | re.VERBOSE,
)
BLOCK: Final = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A piece of a text.

    kind: ``blank``, ``literal``, ``word`` (keywords and bare names), ``end`` (a semicolon),
    ``comment``, ``name`` (in quotes), ``other``. The last token of a text may be cut off.
    """

    kind: str
    text: str


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text. Joined together they are the text."""
    at = 0
    while (match := TOKEN.match(text, at)) is not None:
        end = match.end()
        if match["block"] is not None:
            end = _end_of_block(text, end)
        yield Token(match.lastgroup or "other", text[at:end])
        at = end


def _end_of_block(text: str, at: int) -> int:
    """Return the end of a block comment; block comments can be nested."""
    depth = 1
    while depth and (match := BLOCK.search(text, at)) is not None:
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at if depth == 0 else len(text)
