"""Parameters: from JSON to PostgreSQL's text, whose type the server infers."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from platform_site.lib.errors import InvalidRequest

# The protocol counts parameters in 16 bits.
MAX_PARAMS: Final = 65_535
# int, float, bool and null need no quotes in an array literal; text always gets them.
MAX_DEPTH: Final = 6


def encode_params(values: Sequence[Any], *, field: str = "params") -> list[bytes | None]:
    """Return each parameter as text: arrays as array literals, objects as JSON.

    Raises InvalidRequest naming the parameter (too many of them, a NUL character, an array deeper
    than PostgreSQL's six dimensions).
    """
    if len(values) > MAX_PARAMS:
        raise InvalidRequest.for_field(field, f"At most {MAX_PARAMS} parameters.", code="too_many")
    encoded: list[bytes | None] = []
    for index, value in enumerate(values):
        text = _text(value, f"{field}.{index}")
        # libpq reads text parameters up to a NUL; the rest would be silently lost.
        if text is not None and b"\0" in text:
            raise InvalidRequest.for_field(
                f"{field}.{index}", "PostgreSQL's text holds no NUL character.", code="nul"
            )
        encoded.append(text)
    return encoded


def _text(value: Any, field: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int | float):
        return repr(value).encode("ascii")
    if isinstance(value, list):
        return _array(value, field, depth=1)
    return orjson.dumps(value)


def _array(values: list[Any], field: str, *, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise InvalidRequest.for_field(field, f"Arrays nest {MAX_DEPTH} deep.", code="too_deep")
    parts: list[bytes] = []
    for value in values:
        if isinstance(value, list):
            parts.append(_array(value, field, depth=depth + 1))
        else:
            parts.append(_element(_text(value, field)))
    return b"{" + b",".join(parts) + b"}"


def _element(text: bytes | None) -> bytes:
    if text is None:
        return b"NULL"
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
