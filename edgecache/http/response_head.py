"""Heads of answers as bytes, and the dates in heads."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Final

HeaderPairs = Sequence[tuple[str, str]]

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus
}


class HeaderRefused(ValueError):
    """A header contains a line break (header injection), or the end of the body is not clear."""


@lru_cache(maxsize=8192)
def http_date(second: int) -> str:
    """Return a time as RFC 9110 §5.6.7 writes it; whole Unix seconds."""
    return formatdate(second, usegmt=True)


def parse_http_date(text: str) -> datetime | None:
    """Return an HTTP date in UTC, None for any other text. A time without a zone is UTC."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def response_head(
    status: int, headers: HeaderPairs, length: int | None, *, keeps_alive: bool
) -> bytes:
    """Return the status line and the header fields, up to the empty line.

    length: the body's, where the headers do not say it. A date among the headers stays: it is when
    an origin made the response.
    Raises HeaderRefused.
    """
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} Status"]
    lines += [f"{name}: {value}" for name, value in headers]
    names = [name.lower() for name, _ in headers]
    if names.count("content-length") + names.count("transfer-encoding") > 1:
        # RFC 9112 §6.2: the client may believe either.
        raise HeaderRefused
    if length is not None and "content-length" not in names:
        lines.append(f"content-length: {length}")
    elif length is not None and str(length) != headers[names.index("content-length")][1]:
        raise HeaderRefused
    text = "\r\n".join(lines)
    breaks = len(lines) - 1
    if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text:
        raise HeaderRefused
    end = b"\r\n" if keeps_alive else b"connection: close\r\n\r\n"
    date = b"" if "date" in names else f"date: {http_date(int(time.time()))}\r\n".encode()
    return text.encode("utf-8", "surrogateescape") + b"\r\n" + date + end
