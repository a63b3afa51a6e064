"""Limits on guessing: one atomic statement a try, so that parallel tries cannot slip past.

A try is counted before its secret is looked at. After ``free`` tries each further one has to wait
1, 2, 4 … seconds, at most 15 minutes: a stranger can slow an account, never lock it for good.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from accounts.models import Throttle
from platform_site.lib.errors import TooManyRequests

MAX_WAIT_S: Final = 900
# A counter that rested this long starts anew.
FORGET_AFTER: Final = timedelta(hours=24)

# No wait is a moment long past, not now: of two tries at once, one read the clock before the other.
_TRY: Final = """
INSERT INTO accounts_throttle AS t (key, failures, last_at, blocked_until)
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
INSERT INTO accounts_throttle AS t (key, failures, last_at, blocked_until)
VALUES (%(key)s, 1, %(now)s, %(ends)s)
ON CONFLICT (key) DO UPDATE SET failures = t.failures + 1, last_at = %(now)s
WHERE t.failures < %(limit)s
RETURNING failures
"""


def _key(kind: str, subject: str) -> str:
    # A digest: the table must not become a list of addresses.
    return hashlib.sha256(f"{kind}\0{subject}".encode()).hexdigest()


def attempt(kind: str, subject: str, *, free: int, now: datetime) -> bool:
    """Count one try and say whether it may go on; a refused try is not counted.

    kind: what is limited (``login``). subject: whose tries (an e-mail, an address).
    free: tries before the waits begin.
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
    """Forget the tries: the secret was right. True if there were any."""
    return bool(Throttle.objects.filter(key=_key(kind, subject)).delete()[0])


def take(kind: str, subject: str, *, limit: int, window: timedelta, now: datetime) -> int:
    """Count one use in a fixed window; return 0, or the seconds until a full window ends.

    A use that is refused is not counted.
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
    """Count one use less: the credentials were right."""
    started = int(now.timestamp() // window.total_seconds() * window.total_seconds())
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_throttle SET failures = failures - 1 WHERE key = %s AND failures > 0",
            [_key(f"{kind}@{started}", subject)],
        )


def delete_old(*, now: datetime) -> int:
    """Delete counters that no longer mean anything; return their number."""
    old = Throttle.objects.filter(last_at__lt=now - FORGET_AFTER, blocked_until__lt=now)
    return old.delete()[0]
