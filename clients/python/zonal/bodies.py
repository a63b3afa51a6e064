"""Request bodies: JSON with the values that Python programs pass as parameters."""

import json
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Optional
from uuid import UUID


def encoded(body: Any) -> bytes:
    """Return JSON; dates, decimals, UUIDs and bytes become the text that PostgreSQL reads.

    Raises ValueError for NaN and infinities: send them as strings.
    """
    return json.dumps(body, default=_text, separators=(",", ":"), allow_nan=False).encode()


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def flag(value: Optional[bool]) -> Optional[str]:
    """Return a boolean as query strings have it."""
    return None if value is None else str(value).lower()


def _text(value: Any) -> str:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "\\x" + bytes(value).hex()
    raise TypeError(f"A {type(value).__name__} cannot be sent as JSON.")
