"""Names that people choose, which others see in lists and in mails."""

import unicodedata
from typing import Any, Final

from rest_framework import serializers

# Characters that change the reading direction of the surrounding text.
BIDI_CONTROLS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e")
BIDI_ISOLATES: Final = frozenset("\u2066\u2067\u2068\u2069")
# Control characters, lone surrogates, and line and paragraph separators.
BREAKING: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
RULE: Final = "No line breaks, control characters or characters that change the text's direction."


def is_one_line(text: str) -> bool:
    """True if a text is displayed on one line, in the order in which it is written."""
    return not any(
        unicodedata.category(char) in BREAKING or char in BIDI_CONTROLS | BIDI_ISOLATES
        for char in text
    )


class NameField(serializers.CharField):
    """A name: trimmed, on one line, and displayed as it is written."""

    default_error_messages = {"name": RULE}

    def to_internal_value(self, data: Any) -> str:
        """Return the name. Raises ValidationError, with the code ``name``."""
        text: str = super().to_internal_value(data)
        if not is_one_line(text):
            self.fail("name")
        return text
