"""Find statements that begin or end a transaction, before anything runs.

Only PostgreSQL parses statements; this module reads the first words of each. If it misreads a text,
the request is still refused afterwards, because its transaction has changed (transactions.py).
"""

import re
from collections.abc import Iterator
from typing import Final

from sqlgateway.run.sql_text import tokens

# CREATE OR REPLACE FUNCTION and ROLLBACK TRANSACTION TO are the longest beginnings that matter.
WORDS: Final = 4
CONTROL: Final = frozenset({"ABORT", "BEGIN", "COMMIT", "END", "START"})
FILLERS: Final = frozenset({"TRANSACTION", "WORK"})
# One search shows that most texts have none of these words.
MENTIONS: Final = re.compile(
    r"\b(?:ABORT|BEGIN|COMMIT|END|PREPARE|ROLLBACK|START)\b", re.IGNORECASE
)
# A routine can commit, called by a text or by the block of a DO.
COMMITTING: Final = re.compile(r"\b(?:CALL|COMMIT)\b", re.IGNORECASE)
ROUTINES: Final = frozenset({"FUNCTION", "PROCEDURE"})


def first_control(text: str) -> int:
    """Return the number of the first statement that begins or ends a transaction, from 1.

    0 if there is none.
    """
    if MENTIONS.search(text) is None:
        return 0
    for number, words in enumerate(_beginnings(text), start=1):
        if is_control(words):
            return number
    return 0


def may_commit(text: str) -> bool:
    """True if a text runs a routine, which may commit changes."""
    if COMMITTING.search(text) is None:
        return False
    return any(words[0] in {"CALL", "DO"} for words in _beginnings(text))


def is_control(words: list[str]) -> bool:
    """True if a statement that begins with these words begins or ends a transaction.

    Savepoints do neither.
    """
    if words[0] == "ROLLBACK":
        rest = [word for word in words[1:] if word not in FILLERS]
        return rest[:1] != ["TO"]
    return words[0] in CONTROL or words[:2] == ["PREPARE", "TRANSACTION"]


def _beginnings(text: str) -> Iterator[list[str]]:
    """Yield the first words of each statement, in capitals; other tokens as an empty string."""
    words: list[str] = []
    depth = 0
    last = ""
    for kind, token in tokens(text):
        if kind in {"blank", "comment"}:
            continue
        if kind == "end" and depth == 0:
            if words:
                yield words
            words, last = [], ""
            continue
        word = token.upper() if kind == "word" else ""
        if len(words) < WORDS:
            words.append(word)
        elif words[0] == "CREATE" and not ROUTINES.isdisjoint(words):
            depth = _depth(depth, last, word)
        last = word
    if words:
        yield words


def _depth(depth: int, last: str, word: str) -> int:
    """Return the depth of blocks in a function's body after a word, 0 outside of the body.

    A body in standard SQL is BEGIN ATOMIC ... END. It may contain semicolons and CASE ... END.
    """
    if depth == 0:
        return 1 if (last, word) == ("BEGIN", "ATOMIC") else 0
    return depth + (word == "CASE") - (word == "END")
