"""Remove secrets from the text of statements before it is kept.

Parameters' values are never kept, but a text may hold secrets itself, as in ``ALTER ROLE ...
PASSWORD 'x'``. Where a text mentions one, all of its literals and comments are removed: which of
them is the secret cannot be known. In doubt the text is removed as a whole.
"""

import re
from typing import Final

from sqlgateway.execution.sql_lexer import tokens

REMOVED: Final = "'[removed]'"
# Kinds of tokens that may hold a secret.
HIDING: Final = frozenset({"literal", "comment"})
# It decides where literals end.
SETTING: Final = "standard_conforming_strings"
ALL_REMOVED: Final = "[removed: the text may contain a secret]"

# Words that go with a secret, and URLs with a password.
MENTIONS: Final = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|api_?key|private_?key|crypt|hmac|bearer"
    r"|://[^\s/@]*:[^\s/@]*@",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Return a text, which may have been cut, without what may be a secret."""
    if MENTIONS.search(text) is None:
        return text
    if SETTING in text.lower():
        return ALL_REMOVED
    return "".join(REMOVED if kind in HIDING else token for kind, token in tokens(text))
