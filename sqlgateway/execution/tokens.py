"""Literals, comments and quoted names of a text, for guesses that protect nobody from its author.

PostgreSQL alone decides what a text means; this reads it as the server does under the settings that
every request begins with.
"""

import re
from typing import Final

# What the pattern below would read differently than the server: literals that escape by
# backslash, and comments inside comments.
UNREADABLE: Final = re.compile(
    r"standard_conforming_strings|/\*(?:(?!\*/).)*/\*", re.IGNORECASE | re.DOTALL
)
# Quoted names are read as well, since they may contain quotes. The last token may be cut off.
# E'...' goes on after a line break (PostgreSQL, 4.1.2.1).
TOKENS: Final = re.compile(
    r"""
    (?P<name> "(?:[^"]|"")*(?:"|\Z) )
    | (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?<![\w$])[eE]'(?:[^'\\]|''|\\.)*(?:'(?:\s*\n\s*'(?:[^'\\]|''|\\.)*')*|\\?\Z)
    | '(?:[^']|'')*(?:'|\Z)
    | (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)
    """,
    re.DOTALL | re.VERBOSE,
)
# ROLLBACK TO a savepoint stays in its transaction.
CONTROL: Final = re.compile(
    r"(?:\A|;)\s*(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|PREPARE\s+TRANSACTION)\b"
    r"(?!\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b)",
    re.IGNORECASE,
)
# The body of a function holds statements and an END of its own.
ATOMIC: Final = re.compile(r"\bBEGIN\s+ATOMIC\b", re.IGNORECASE)


def controls_transaction(text: str) -> bool:
    """True if one of the statements of a text begins or ends a transaction, as far as one can see.

    The server's state after the text is the proof; this is for an error before anything runs.
    """
    code = TOKENS.sub(lambda match: " " if match["comment"] is not None else "''", text)
    return CONTROL.search(code) is not None and ATOMIC.search(code) is None
