"""Why a message did not go out; never raised at a caller, only settled in its row.

::

    Failure
    ├── Refused  never going to work: the recipient is not there, or does not take it
    └── Delayed  may work later: the provider is away, busy, or set up wrongly
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_RETRY_AFTER_S: Final = 3600


class Failure(Exception):
    """A failed attempt; ``error`` is a short code of ours, never the provider's words."""

    def __init__(self, error: str, *, retry_after_s: int = 0) -> None:
        super().__init__(error)
        self.error = error
        self.retry_after_s = retry_after_s


class Refused(Failure):
    """Trying again would be refused again."""


class Delayed(Failure):
    """Worth another attempt, not sooner than ``retry_after_s`` from now."""


def retry_after_s(header: str, *, now: datetime) -> int:
    """Read a Retry-After header, seconds or a date (RFC 9110 §10.2.3); 0 for what is neither.

    At most an hour: a provider's slip must not park a message for a year.
    """
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:6]), LONGEST_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 0
    wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return min(max(0, int(wait.total_seconds())), LONGEST_RETRY_AFTER_S)
