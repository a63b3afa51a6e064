"""Where statements end, so that the prompt knows when to send them.

A semicolon ends a statement except in comments, strings, quoted names and dollar quotes, in
parentheses (CREATE RULE has several statements there), and in a function's body, which begins with
BEGIN ATOMIC and ends with an END in the place of a statement.
Source: PostgreSQL 18's manual, chapter 4.1; its gram.y (routine_body_stmt_list); psql's lexer.
"""

import re

LETTERS = "A-Za-z_\u0080-\U0010ffff"
TOKEN = re.compile(
    rf"""(?P<blank>[ \t\n\r\f\v]+|--[^\n\r]*)
    |(?P<comment>/\*)
    |(?P<escaped>[eE]')
    |(?P<quoted>['"])
    |(?P<dollar>\$(?:[{LETTERS}][{LETTERS}0-9]*)?\$)
    |(?P<word>[{LETTERS}][{LETTERS}0-9$]*)
    |(?P<number>[0-9][{LETTERS}0-9]*|\$[0-9]+)
    |(?P<other>.)""",
    re.VERBOSE,
)
COMMENT_MARK = re.compile(r"/\*|\*/")
# The rest of E'…'. A string on one of the next lines continues it, with backslashes, too.
ESCAPED = re.compile(r"(?:[^'\\]|''|\\.)*'(?!')", re.DOTALL)
CONTINUED = re.compile(r"[ \t\f\v]*(?:--[^\n\r]*)?[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*'")


def is_complete(text: str) -> bool:
    """True if text ends with a semicolon that ends a statement. In doubt it does not."""
    at = depth = 0
    first = last = ""
    is_body = is_open = has_ended = False
    while at < len(text):
        token = TOKEN.match(text, at)
        at = _end(text, token) if token else -1
        if token is None or at < 0:
            return False
        if token.lastgroup in {"blank", "comment"}:
            continue
        word = token.group().lower()
        if word == ";" and depth == 0 and not is_body:
            first, is_open, has_ended = "", False, True
            continue
        is_open = True
        first = first or word
        depth = max(0, depth + (word == "(") - (word == ")"))
        if first == "create" and depth == 0:
            if word == "atomic" and last == "begin":
                # As after a semicolon: a body may be empty.
                is_body, word = True, ";"
            elif word == "end" and last == ";":
                is_body = False
            last = word
    return has_ended and not is_open


def _end(text: str, token: "re.Match[str]") -> int:
    """Return where a token ends, -1 if later than the text."""
    kind = token.lastgroup
    if kind == "comment":
        return _end_of_comment(text, token.start())
    if kind == "escaped":
        return _end_of_escaped(text, token.end())
    if kind in {"quoted", "dollar"}:
        # A doubled quote ends one string and begins another, which is the same here.
        end = text.find(token.group(), token.end())
        return -1 if end < 0 else end + len(token.group())
    return token.end()


def _end_of_comment(text: str, at: int) -> int:
    depth = 0
    for mark in COMMENT_MARK.finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1


def _end_of_escaped(text: str, at: int) -> int:
    while rest := ESCAPED.match(text, at):
        going_on = CONTINUED.match(text, rest.end())
        if going_on is None:
            return rest.end()
        at = going_on.end()
    return -1
