"""The text of statements: split into tokens, as PostgreSQL's lexer does, and redacted.

PostgreSQL alone decides what a text means; this module assumes the settings that every request
begins with (standard_conforming_strings is on). Source: PostgreSQL's scan.l, documentation 4.1.

Parameters' values are never kept, but a text may contain secrets, as in ``ALTER ROLE ... PASSWORD
'x'``. If a text mentions a secret, all of its literals and comments are removed, because any of
them may be the secret. If literals cannot be found reliably, the whole text is removed.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlgateway.models import ALL_REMOVED, REMOVED

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
# Kinds of tokens that may hold a secret.
SECRET_KINDS: Final = frozenset({"literal", "comment"})
# A setting that changes where literals end.
LITERALS_SETTING: Final = "standard_conforming_strings"
# Words that occur with secrets, and URLs with a password. Without backtracking: tenants choose the
# texts, and a search holds the interpreter lock.
SECRET_WORDS: Final = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|api_?key|private_?key|crypt|hmac|bearer"
    r"|://[^\s/@:]*+:[^\s/@]*+@",
    re.IGNORECASE,
)


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


def redacted(text: str) -> str:
    """Return a text without possible secrets; the text may be truncated."""
    if SECRET_WORDS.search(text) is None:
        return text
    if LITERALS_SETTING in text.lower():
        return ALL_REMOVED
    return "".join(REMOVED if kind in SECRET_KINDS else token for kind, token in tokens(text))


def _end_of_block(text: str, at: int) -> int:
    """Return the end of a block comment; block comments can be nested."""
    depth = 1
    while depth and (match := BLOCK.search(text, at)) is not None:
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at if depth == 0 else len(text)
