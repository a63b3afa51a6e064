"""A hook of mkdocs: pages load nothing from other servers; links into the repository are text."""

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError

ROOT: Final = Path(__file__).resolve().parents[1]
LINK: Final = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)\)")


FOREIGN: Final = re.compile(r"""\ssrc=["']?(?:https?:)?//|<link [^>]*href=["']?(?:https?:)?//""")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page whose links into the repository are text: the site holds docs/ alone."""
    return LINK.sub(_as_text, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Return a page. Raises PluginError if it loads anything from another server."""
    if FOREIGN.search(output):
        raise PluginError("A page loads a file from another server.")
    return output


def _as_text(link: re.Match[str]) -> str:
    text, path = link.groups()
    if not (ROOT / path).exists():
        raise PluginError(f"A link leads to {path}, which does not exist.")
    return text if path.endswith(text) else f"{text} (`{path}`)"
