"""Rate limits: one atomic statement per attempt, so that concurrent attempts are all counted.

An attempt is counted before the secret is checked. After ``free`` attempts each further one has to
wait 1, 2, 4 … seconds, at most 15 minutes: an attacker can delay an account's owner, but not lock
the account permanently.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from common.errors import TooManyRequests
from common.models import Throttle

MAX_WAIT_S: Final = 900
# A counter that was unused for this long starts again at zero.
FORGET_AFTER: Final = timedelta(hours=24)

# "No wait" is stored as a time long past, not as now: of two concurrent attempts, one has read the
# clock earlier than the other.
_TRY: Final = """
INSERT INTO common_throttle AS t (key, failures, last_at, blocked_until)
VALUES (%(key)s, 1, %(now)s,
    CASE WHEN %(free)s <= 1 THEN %(now)s + interval '1 second' ELSE to_timestamp(0) END)
ON CONFLICT (key) DO UPDATE SET
    failures = CASE WHEN t.last_at < %(forget)s THEN 1 ELSE t.failures + 1 END,
    last_at = %(now)s,
    blocked_until = CASE
        WHEN t.last_at < %(forget)s OR t.failures + 1 < %(free)s THEN to_timestamp(0)
        ELSE %(now)s + make_interval(
            secs => least(%(max)s, power(2, least(t.failures + 1 - %(free)s, 20)))) END
WHERE t.blocked_until <= %(now)s
RETURNING failures
"""

_TAKE: Final = """
INSERT INTO common_throttle AS t (key, failures, last_at, blocked_until)
VALUES (%(key)s, 1, %(now)s, %(ends)s)
ON CONFLICT (key) DO UPDATE SET failures = t.failures + 1, last_at = %(now)s
WHERE t.failures < %(limit)s
RETURNING failures
"""


def _key(kind: str, subject: str) -> str:
    # A digest, so that the table contains no addresses.
    return hashlib.sha256(f"{kind}\0{subject}".encode()).hexdigest()


def attempt(kind: str, subject: str, *, free: int, now: datetime) -> bool:
    """Count one attempt; True if it is allowed. A refused attempt is not counted.

    kind: what is limited (``login``). subject: whose attempts (an e-mail, an address).
    free: attempts before the waits begin.
    """
    values: dict[str, Any] = {
        "key": _key(kind, subject),
        "now": now,
        "free": free,
        "max": MAX_WAIT_S,
        "forget": now - FORGET_AFTER,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TRY, values)
        return cursor.fetchone() is not None


def reset(kind: str, subject: str) -> bool:
    """Delete the counter after a correct secret. True if there was one."""
    return bool(Throttle.objects.filter(key=_key(kind, subject)).delete()[0])


def take(kind: str, subject: str, *, limit: int, window: timedelta, now: datetime) -> int:
    """Count one use in a fixed window; return 0, or if it is full the seconds until it ends.

    A refused use is not counted.
    """
    started = int(now.timestamp() // window.total_seconds() * window.total_seconds())
    ends = datetime.fromtimestamp(started, tz=now.tzinfo) + window
    values: dict[str, Any] = {
        "key": _key(f"{kind}@{started}", subject),
        "now": now,
        "limit": limit,
        "ends": ends,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, values)
        if cursor.fetchone() is not None:
            return 0
    return max(1, int((ends - now).total_seconds()))


def enforce(
    kind: str,
    subject: str,
    *,
    limit: int,
    window: timedelta,
    error: type[TooManyRequests],
    now: datetime,
) -> None:
    """Count one use as ``take`` does; raise ``error`` (429) if the window is full."""
    wait_s = take(kind, subject, limit=limit, window=window, now=now)
    if wait_s:
        raise error(retry_after_s=wait_s)


def uncount(kind: str, subject: str, *, window: timedelta, now: datetime) -> None:
    """Take back one use after correct credentials."""
    started = int(now.timestamp() // window.total_seconds() * window.total_seconds())
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE common_throttle SET failures = failures - 1 WHERE key = %s AND failures > 0",
            [_key(f"{kind}@{started}", subject)],
        )


def delete_old(*, now: datetime) -> int:
    """Delete counters that no longer have an effect; return their number."""
    old = Throttle.objects.filter(last_at__lt=now - FORGET_AFTER, blocked_until__lt=now)
    return old.delete()[0]
