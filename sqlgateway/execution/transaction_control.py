"""Find statements that begin or end a transaction, before anything runs.

PostgreSQL splits texts, not the gateway; this only looks at how each statement begins. A text that
it reads wrongly is still refused afterwards (transactions.py), when the transaction is another one.
"""

import re
from collections.abc import Iterator
from typing import Final

TOKEN: Final = re.compile(
    r"""
    (?P<skip>\s++ | --[^\r\n]*+)
    | (?P<comment>/\*)
    | [eE]'(?:[^'\\]++|''|\\.)*+'
    | '(?:[^']++|'')*+'
    | "(?:[^"]++|"")*+"
    | \$(?P<tag>\w*+)\$.*?\$(?P=tag)\$
    | (?P<end>;)
    | (?P<word>[A-Za-z_][\w$]*+)
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
COMMENT: Final = re.compile(r"/\*|\*/")
# ROLLBACK TRANSACTION TO is the longest beginning that matters.
WORDS: Final = 3
CONTROL: Final = frozenset({"ABORT", "BEGIN", "COMMIT", "END", "START"})
FILLERS: Final = frozenset({"TRANSACTION", "WORK"})
# The body of a function in standard SQL holds semicolons and an END.
ATOMIC: Final = "ATOMIC"


def first_control(text: str) -> int:
    """Return which statement of a text is the first transaction control, from 1; 0 if none is."""
    for number, words in enumerate(_beginnings(text), start=1):
        if is_control(words):
            return number
    return 0


def is_control(words: list[str]) -> bool:
    """True if a statement that begins with these words begins or ends a transaction.

    Savepoints do neither.
    """
    if words[0] == "ROLLBACK":
        rest = [word for word in words[1:] if word not in FILLERS]
        return rest[:1] != ["TO"]
    return words[0] in CONTROL or words[:2] == ["PREPARE", "TRANSACTION"]


def _beginnings(text: str) -> Iterator[list[str]]:
    """Yield the first words of each statement, in capitals; a word that is none is empty."""
    words: list[str] = []
    at = 0
    while (match := TOKEN.match(text, at)) is not None:
        at = match.end()
        if match["skip"] is not None:
            continue
        if match["comment"] is not None:
            at = _end_of_comment(text, at)
        elif match["end"] is not None:
            if words:
                yield words
            words = []
        elif len(words) < WORDS:
            words.append((match["word"] or "").upper())
        elif (match["word"] or "").upper() == ATOMIC:
            break
    if words:
        yield words


def _end_of_comment(text: str, at: int) -> int:
    depth = 1
    while depth and (match := COMMENT.search(text, at)) is not None:
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at if depth == 0 else len(text)
