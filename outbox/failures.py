"""Why a message was not sent; never raised to a caller, only recorded in its row.

::

    Failure
    ├── PermanentFailure  will never work: the recipient does not exist or refuses the message
    └── TemporaryFailure  may work later: the provider is down, busy, or configured wrongly
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

MAX_RETRY_AFTER_S: Final = 3600


class Failure(Exception):
    """A failed attempt; ``error`` is a short code of the platform, never the provider's text."""

    def __init__(self, error: str, *, retry_after_s: int = 0) -> None:
        super().__init__(error)
        self.error = error
        self.retry_after_s = retry_after_s


class PermanentFailure(Failure):
    """Another attempt would fail again."""


class TemporaryFailure(Failure):
    """Another attempt may succeed, but not before ``retry_after_s`` have passed."""


def retry_after_s(header: str, *, now: datetime) -> int:
    """Return the seconds of a Retry-After header (a number or a date, RFC 9110 §10.2.3), else 0.

    At most an hour: a provider's mistake must not delay a message for a year.
    """
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:6]), MAX_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 0
    wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return min(max(0, int(wait.total_seconds())), MAX_RETRY_AFTER_S)
