"""Pages of keys in the order of their UTF-8 bytes, grouped by a delimiter."""

from typing import Final

from edgecache.brain.core.values import KEY_LIMIT_BYTES

# A suffix that sorts after all keys with the text before it.
LAST: Final = chr(0x10FFFF) * (KEY_LIMIT_BYTES // 4)


def after(prefix: str, start_after: str, delimiter: str) -> str:
    """Return the text after which the page starts; after a whole group if it names one."""
    return start_after + LAST if _names_group(prefix, start_after, delimiter) else start_after


def behind(prefix: str, start_after: str, delimiter: str) -> str:
    """Return the same for a server that refuses texts longer than a key."""
    return start_after + LAST[:1] if _names_group(prefix, start_after, delimiter) else start_after


def _names_group(prefix: str, start_after: str, delimiter: str) -> bool:
    return (
        delimiter != ""
        and len(start_after) > len(prefix)
        and start_after.startswith(prefix)
        and start_after.endswith(delimiter)
    )
