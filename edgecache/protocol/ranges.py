"""The Range header (RFC 9110 §14.2), for one range of bytes."""

import re
from typing import Final

# More digits than any size has, few enough to be cheap.
_RANGE: Final = re.compile(
    r"bytes=[ \t]*([0-9]{0,19})-([0-9]{0,19})[ \t]*", re.ASCII | re.IGNORECASE
)


class RangeNotSatisfiable(Exception):
    """The range begins after the last byte: 416."""


def part_of_any(header: str) -> str:
    """Return a Range header that requests one part, whatever the size; '' for all other headers."""
    match = _RANGE.fullmatch(header)
    if match is None:
        return ""
    first, last = match.groups()
    is_part = int(last) >= int(first or "1") if last else bool(first.strip("0"))
    return f"bytes={first}-{last}" if is_part else ""


def requested(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the start and the length that a Range header requests of ``size`` bytes.

    None: answer the whole (no header, another unit, several ranges, or an invalid range, which RFC
    9110 lets a server ignore). Raises RangeNotSatisfiable.
    """
    match = _RANGE.fullmatch(header) if header else None
    if match is None:
        return None
    first, last = match.groups()
    if not first:
        return _suffix(last, size)
    start = int(first)
    if last and int(last) < start:
        return None
    if start >= size:
        raise RangeNotSatisfiable
    return start, min(int(last) + 1 if last else size, size) - start


def _suffix(last: str, size: int) -> tuple[int, int] | None:
    if not last:
        return None
    length = min(int(last), size)
    if length == 0:
        raise RangeNotSatisfiable
    return size - length, length
