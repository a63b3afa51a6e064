"""Where statements end, so that the prompt knows when to send them."""

import re
from typing import Optional

# A whole string, name or body of a function, in which a semicolon ends nothing.
QUOTED = re.compile(
    r"""[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$""",
    re.DOTALL,
)
# The beginning of one that ends later.
OPENING = re.compile(r"""[eE]?'|"|\$(?:[A-Za-z_]\w*)?\$""")
WORD = re.compile(r"[A-Za-z_0-9\u0080-\uffff][\w$]*")


def is_complete(text: str) -> bool:
    """True if text ends with a semicolon outside of strings, names and comments."""
    at, is_open, has_ended = 0, False, False
    while at < len(text):
        comment = _after_comment(text, at)
        if comment is not None:
            if comment < 0:
                return False
            at = comment
            continue
        quoted = QUOTED.match(text, at)
        if quoted is None and OPENING.match(text, at):
            return False
        # E'…' is a string; in other words a quote or a dollar is none of the word.
        word = None if quoted else WORD.match(text, at)
        if text[at] == ";":
            is_open, has_ended = False, True
        elif not text[at].isspace():
            is_open = True
        at = quoted.end() if quoted else word.end() if word else at + 1
    return has_ended and not is_open


def _after_comment(text: str, at: int) -> Optional[int]:
    """Return where a comment that begins here ends: -1 if later, None if none begins."""
    if text.startswith("--", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if not text.startswith("/*", at):
        return None
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1
