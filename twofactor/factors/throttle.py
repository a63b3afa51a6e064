"""Throttling of wrong codes per factor, over all challenges; after 100 the factor is blocked."""

from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final

from twofactor.errors import FactorSlowed, FactorWornOut
from twofactor.models import Factor

FREE: Final = 10
WORN_OUT: Final = 100
MAX_WAIT_S: Final = 900


def refuse_throttled(factor: Factor, now: datetime) -> None:
    """Refuse a throttled or blocked factor.

    Raises FactorSlowed (429), FactorWornOut (403): NIST SP 800-63B-4 §3.2.2 allows at most 100
    consecutive failures.
    """
    if factor.failures >= WORN_OUT:
        raise FactorWornOut
    if factor.blocked_until is not None and now < factor.blocked_until:
        wait = factor.blocked_until - now
        # Rounded up, so that a client that waits this long is not too early.
        raise FactorSlowed(retry_after_s=ceil(wait.total_seconds()))


def count(factor: Factor, now: datetime) -> None:
    """Count a wrong code; the caller has locked the row."""
    factor.failures += 1
    if factor.failures >= FREE:
        wait_s = min(MAX_WAIT_S, 2 ** min(factor.failures - FREE, 20))
        factor.blocked_until = now + timedelta(seconds=wait_s)
    factor.save(update_fields=["failures", "blocked_until"])


def forgiven(now: datetime) -> dict[str, Any]:
    """Return what a correct code writes to its factor: the count of wrong ones begins again."""
    return {"failures": 0, "blocked_until": None, "last_used_at": now}


def reset(factor: Factor, now: datetime) -> None:
    """Reset the count of wrong codes after a correct one."""
    Factor.objects.filter(pk=factor.pk).update(**forgiven(now))
