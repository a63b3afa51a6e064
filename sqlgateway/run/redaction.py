"""Remove secrets from the text of statements before it is kept.

Parameters' values are never kept, but a text may contain secrets, as in ``ALTER ROLE ... PASSWORD
'x'``. If a text mentions a secret, all of its literals and comments are removed, because any of
them may be the secret. If literals cannot be found reliably, the whole text is removed.
"""

import re
from typing import Final

from sqlgateway.models.requests import ALL_REMOVED, REMOVED
from sqlgateway.run.sql_text import tokens

# Kinds of tokens that may hold a secret.
HIDING: Final = frozenset({"literal", "comment"})
# A setting that changes where literals end.
SETTING: Final = "standard_conforming_strings"

# Words that occur with secrets, and URLs with a password. Without backtracking: tenants choose the
# texts, and a search holds the interpreter lock.
MENTIONS: Final = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|api_?key|private_?key|crypt|hmac|bearer"
    r"|://[^\s/@:]*+:[^\s/@]*+@",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Return a text without possible secrets; the text may be truncated."""
    if MENTIONS.search(text) is None:
        return text
    if SETTING in text.lower():
        return ALL_REMOVED
    return "".join(REMOVED if kind in HIDING else token for kind, token in tokens(text))
