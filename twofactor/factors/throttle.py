"""Wrong codes slow a factor down, whatever challenges they were for; a hundred wear it out."""

from datetime import datetime, timedelta
from math import ceil
from typing import Final

from django.db import connection

from twofactor.errors import FactorSlowed, FactorWornOut
from twofactor.models import Factor

FREE: Final = 10
WORN_OUT: Final = 100
MAX_WAIT_S: Final = 900
# What a right answer makes of a factor's row: a literal, since every answer runs it.
FORGIVEN: Final = "failures = 0, blocked_until = NULL, last_used_at = %(now)s"


def refuse_slowed(factor: Factor, now: datetime) -> None:
    """Refuse a factor that has to wait, or was missed too often.

    Raises FactorSlowed (429), FactorWornOut (403): NIST SP 800-63B-4 §3.2.2 allows at most 100
    consecutive failures.
    """
    if factor.failures >= WORN_OUT:
        raise FactorWornOut
    if factor.blocked_until is not None and now < factor.blocked_until:
        wait = factor.blocked_until - now
        # Rounded up, or who waits that long comes too early.
        raise FactorSlowed(retry_after_s=ceil(wait.total_seconds()))


def count(factor: Factor, now: datetime) -> None:
    """Count a wrong code; the row is locked by the caller."""
    factor.failures += 1
    if factor.failures >= FREE:
        wait_s = min(MAX_WAIT_S, 2 ** min(factor.failures - FREE, 20))
        factor.blocked_until = now + timedelta(seconds=wait_s)
    factor.save(update_fields=["failures", "blocked_until"])


def forgive(factor: Factor, now: datetime) -> None:
    """Forget the wrong codes after a right one."""
    statement = f"UPDATE twofactor_factor SET {FORGIVEN} WHERE id = %(factor)s"  # noqa: S608 - literal
    with connection.cursor() as cursor:
        cursor.execute(statement, {"now": now, "factor": factor.pk})
