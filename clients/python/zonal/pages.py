"""The pages of listings."""

from typing import Any, Optional
from urllib.parse import parse_qsl, urlsplit


def query_of_next(page: dict[str, Any]) -> Optional[dict[str, str]]:
    """Return the query of the next page, None at the last one.

    Only the query of the URL is used: a token must not be sent to whatever host it names.
    """
    following = page.get("next")
    return dict(parse_qsl(urlsplit(following).query)) if following else None
