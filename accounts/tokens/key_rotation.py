"""Rotation of token keys without signing anyone out: previous keys verify until a date."""

import secrets
from collections.abc import Mapping
from datetime import date
from typing import Final

ROTATED: Final = ("ZJWT_SECRET", "ZJWT_REFRESH_SECRET")
SECRET_BYTES: Final = 48


def rotate(values: Mapping[str, str], *, retires: date, today: date) -> dict[str, str]:
    """Return the settings with a new current key in each ring.

    values: at least the ROTATED settings, and their ``_PREVIOUS`` settings if set. The old key
    becomes the first previous one, as ``key@2026-12-01``: from that day on (UTC) it no longer
    verifies. Retired keys are removed.
    """
    made = {}
    for name in ROTATED:
        held = f"{name}_PREVIOUS"
        earlier = [entry for entry in values.get(held, "").split(",") if entry.strip()]
        kept = [entry for entry in earlier if not _is_over(entry, today)]
        made[name] = secrets.token_urlsafe(SECRET_BYTES)
        made[held] = ",".join([f"{values[name]}@{retires.isoformat()}", *kept])
    return made


def _is_over(entry: str, today: date) -> bool:
    _, _, day = entry.rpartition("@")
    return "@" in entry and date.fromisoformat(day.strip()) <= today
