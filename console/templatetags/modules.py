"""``{% module %}``: a script of a page; its imports are loaded at the same time.

``{% preload %}``: the same for a module that the script imports itself, only on some screens.
"""

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Final

from django import template
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()
IMPORT: Final = re.compile(
    r'^(?:import|export)\b[^"]*?from "(\.[^"]+)";|^} from "(\.[^"]+)";', re.MULTILINE
)
# Large and not needed for the first paint, so style sheets are loaded before it.
VENDOR: Final = "vendor/"
LATER: Final = mark_safe(' fetchpriority="low"')


@register.simple_tag
def module(name: str) -> SafeString:
    """Return the tags of a module; the hints save a round trip per level of imports."""
    hints = _hints(imported(name))
    return format_html('{}\n<script type="module" src="{}"></script>', hints, static(name))


@register.simple_tag
def preload(name: str, *, media: str) -> SafeString:
    """Return the hints of a module that a script imports immediately if a media query matches."""
    return _hints((*imported(name), name), format_html(' media="{}"', media))


def _hints(names: tuple[str, ...], attributes: str = "") -> SafeString:
    """Return a hint for each module."""
    return format_html_join(
        "\n",
        '<link rel="modulepreload" href="{}"{}{}>',
        ([static(each), LATER if each.startswith(VENDOR) else "", attributes] for each in names),
    )


@cache
def imported(name: str) -> tuple[str, ...]:
    """Return the modules that a module imports, directly or not, in the order of their names."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        source = waiting.pop()
        path = finders.find(source)
        text = Path(path).read_text() if isinstance(path, str) else ""
        for match in IMPORT.finditer(text):
            target = posixpath.normpath(
                posixpath.join(posixpath.dirname(source), match[1] or match[2])
            )
            if target not in found:
                found.add(target)
                waiting.append(target)
    return tuple(sorted(found))
