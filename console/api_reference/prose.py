"""The Markdown that descriptions of the OpenAPI document use, as HTML."""

import re
from typing import Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_PARAGRAPHS: Final = re.compile(r"\n\s*\n|\n(?=\* )")
_CODE: Final = re.compile(r"`([^`]+)`")
_STRONG: Final = re.compile(r"\*\*([^*]+)\*\*")


def paragraphs(text: str) -> list[SafeString]:
    """Return each paragraph, and each item of a list, as HTML without its outer element."""
    return [
        inline(part.strip().removeprefix("* ")) for part in _PARAGRAPHS.split(text) if part.strip()
    ]


def inline(text: str) -> SafeString:
    """Return one paragraph as HTML, with ``code`` and **strong**; everything else is escaped."""
    marked = _CODE.sub(r"<code>\1</code>", escape(text))
    return mark_safe(_STRONG.sub(r"<strong>\1</strong>", marked))  # noqa: S308 - escaped above
