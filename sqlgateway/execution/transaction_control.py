"""Find statements that begin or end a transaction, before anything runs.

PostgreSQL splits texts, not the gateway; this only looks at how each statement begins. A text that
it reads wrongly is still refused afterwards (transactions.py), when the transaction is another one.
"""

import re
from collections.abc import Iterator
from typing import Final

from sqlgateway.execution.sql_lexer import tokens

# CREATE OR REPLACE FUNCTION and ROLLBACK TRANSACTION TO are the longest beginnings that matter.
WORDS: Final = 4
CONTROL: Final = frozenset({"ABORT", "BEGIN", "COMMIT", "END", "START"})
FILLERS: Final = frozenset({"TRANSACTION", "WORK"})
# Most texts have none of the words, which one search shows. Only a blank, a comment or a semicolon
# comes before a statement.
MENTIONS: Final = re.compile(
    r"\b(?:ABORT|BEGIN|COMMIT|END|PREPARE|ROLLBACK|START)\b", re.IGNORECASE
)
# A routine can commit, called by a text or by the block of a DO.
COMMITTING: Final = re.compile(r"\b(?:CALL|COMMIT)\b", re.IGNORECASE)
ROUTINES: Final = frozenset({"FUNCTION", "PROCEDURE"})


def first_control(text: str) -> int:
    """Return which statement of a text is the first transaction control, from 1; 0 if none is."""
    if MENTIONS.search(text) is None:
        return 0
    for number, words in enumerate(_beginnings(text), start=1):
        if is_control(words):
            return number
    return 0


def may_commit(text: str) -> bool:
    """True if a routine that a text runs may commit what it has written so far."""
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
    """Yield the first words of each statement, in capitals; a token that is none is empty."""
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
    """Return how deep a function's body is after a word, 0 outside of it.

    A body in standard SQL is BEGIN ATOMIC ... END, with semicolons, and CASE ... END, in it.
    """
    if depth == 0:
        return 1 if (last, word) == ("BEGIN", "ATOMIC") else 0
    return depth + (word == "CASE") - (word == "END")
