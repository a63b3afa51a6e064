"""Names as people write them in SQL."""

import re
from typing import Optional

PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*')
# The most common ones, all upper case.
KEYWORDS = frozenset(
    {
        "ALTER",
        "ANALYZE",
        "AND",
        "AS",
        "ASC",
        "BEGIN",
        "BETWEEN",
        "BY",
        "CASCADE",
        "CASE",
        "CHECK",
        "COMMIT",
        "CONSTRAINT",
        "CREATE",
        "DATABASE",
        "DEFAULT",
        "DELETE",
        "DESC",
        "DISTINCT",
        "DROP",
        "ELSE",
        "END",
        "EXISTS",
        "EXPLAIN",
        "FALSE",
        "FOREIGN",
        "FROM",
        "FUNCTION",
        "GENERATED",
        "GROUP",
        "HAVING",
        "ILIKE",
        "IN",
        "INDEX",
        "INNER",
        "INSERT",
        "INTERVAL",
        "INTO",
        "IS",
        "JOIN",
        "KEY",
        "LEFT",
        "LIKE",
        "LIMIT",
        "MATERIALIZED",
        "NOT",
        "NULL",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "PARTITION",
        "PRIMARY",
        "REFERENCES",
        "RETURNING",
        "RIGHT",
        "ROLLBACK",
        "SCHEMA",
        "SELECT",
        "SET",
        "TABLE",
        "THEN",
        "TRUE",
        "TRUNCATE",
        "UNION",
        "UNIQUE",
        "UPDATE",
        "USING",
        "VALUES",
        "VIEW",
        "WHEN",
        "WHERE",
        "WITH",
    }
)


def parts_of(text: str, separator: str) -> Optional[list[str]]:
    """Return the names in a text as PostgreSQL reads them: folded, or as they are in quotes.

    None if the text is not made of names.
    """
    found: list[str] = []
    at = 0
    while part := PART.match(text, at):
        quoted, plain = part.groups()
        found.append(quoted.replace('""', '"') if quoted else _folded(plain))
        at = part.end()
        if at == len(text):
            return found
        if text[at] != separator:
            return None
        at += 1
    return None


def quoted(name: str) -> str:
    """Return a name as SQL takes it."""
    is_plain = re.fullmatch(r"[a-z_][a-z0-9_$]*", name) and name.upper() not in KEYWORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _folded(name: str) -> str:
    """Return a name without quotes as PostgreSQL folds it in UTF-8: ASCII letters alone."""
    return "".join(each.lower() if each.isascii() else each for each in name)
