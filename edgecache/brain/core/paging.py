"""Pages of keys in the order of their UTF-8 bytes, grouped by a delimiter."""

from collections.abc import Iterable
from typing import Final

from edgecache.brain.core.values import KEY_LIMIT_BYTES, KeyPage, ListedObject

# A suffix that sorts after all keys with the text before it.
LAST: Final = chr(0x10FFFF) * (KEY_LIMIT_BYTES // 4)


def after(prefix: str, start_after: str, delimiter: str) -> str:
    """Return the text after which the page starts; after a whole group if it names one."""
    return start_after + LAST if _names_group(prefix, start_after, delimiter) else start_after


def behind(prefix: str, start_after: str, delimiter: str) -> str:
    """Return the same for a server that refuses texts longer than a key."""
    return start_after + LAST[:1] if _names_group(prefix, start_after, delimiter) else start_after


def paged(
    rows: Iterable[ListedObject], prefix: str, border: str, delimiter: str, limit: int
) -> KeyPage:
    """Return the page of some rows. border: the text after which it starts (``after``)."""
    objects: list[ListedObject] = []
    prefixes: list[str] = []
    for row in sorted(rows, key=lambda row: row.key):
        if not row.key.startswith(prefix) or row.key <= border:
            continue
        cut = row.key.find(delimiter, len(prefix)) if delimiter else -1
        group = row.key[: cut + len(delimiter)] if cut >= 0 else ""
        if prefixes and group == prefixes[-1]:
            continue
        if len(objects) + len(prefixes) == limit:
            last = max([row.key for row in objects[-1:]] + prefixes[-1:], default="")
            return KeyPage(tuple(objects), tuple(prefixes), last or None)
        if group:
            prefixes.append(group)
        else:
            objects.append(row)
    return KeyPage(tuple(objects), tuple(prefixes), None)


def _names_group(prefix: str, start_after: str, delimiter: str) -> bool:
    return (
        delimiter != ""
        and len(start_after) > len(prefix)
        and start_after.startswith(prefix)
        and start_after.endswith(delimiter)
    )
