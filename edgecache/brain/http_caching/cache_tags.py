"""Tags of cached objects, by which they are purged.

Of an HTTP origin's response: ``Cache-Tag`` (with commas, as Cloudflare has it) and
``Surrogate-Key`` (with blanks, as Fastly has it). Of an object of the built-in origin: its tags, as
``key=value``. Clients never get these headers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from edgecache.brain.core.values import TAGGING_HEADER
from edgecache.http.headers import decoded

CACHE_TAG: Final = "cache-tag"
SURROGATE_KEY: Final = "surrogate-key"
HEADERS: Final = frozenset({CACHE_TAG, SURROGATE_KEY})
# Of one response. A longer one cannot be in the index; Cloudflare and Fastly have the same limits.
MAX_TAGS: Final = 1000
TAG_BYTES: Final = 1024


class FoundTags(NamedTuple):
    """The tags of an object, each once. ignored: how many are beyond the limits."""

    names: tuple[str, ...]
    ignored: int = 0


NONE: Final = FoundTags(())


def tags_of(headers: Mapping[str, str], http: Mapping[str, Any]) -> FoundTags:
    """Return an object's tags. headers: of the object; http: of its response (``as_json``)."""
    if TAGGING_HEADER in headers:
        pairs = parse_qsl(headers[TAGGING_HEADER], keep_blank_values=True)
        return FoundTags(tuple(f"{key}={value}" for key, value in pairs))
    return of_response(http["headers"]) if http else NONE


def of_response(headers: Sequence[Sequence[str]]) -> FoundTags:
    """Return the tags of a response. headers: lower-case names."""
    found = dict.fromkeys(
        tag for name, value in headers if name in HEADERS for tag in _split(name, value)
    )
    if not found:
        return NONE
    names = tuple(tag for tag in found if len(tag.encode(errors="replace")) <= TAG_BYTES)
    return FoundTags(names[:MAX_TAGS], len(found) - len(names[:MAX_TAGS]))


def stored_tag(bucket_id: int, tag: str) -> str:
    """Return how a tag is stored: a look-up then reads no other bucket's objects."""
    return f"{bucket_id}/{tag}"


def _split(name: str, value: str) -> Iterator[str]:
    parts = decoded(value).split("," if name == CACHE_TAG else None)
    return (tag for part in parts if (tag := part.strip()))
