"""How long, and of how many transactions, the outcome is kept.

The number is limited because a client can begin and roll back many transactions in a short time.
"""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from common.principals import Scope
from sqlgateway.models import InteractiveTransaction

State = InteractiveTransaction.State

# A client whose commit was not answered can ask for the outcome during this time. A rollback, or
# the end of the owner, has changed nothing, so its outcome is kept for a shorter time.
KEEP_COMMITTED: Final = timedelta(hours=1)
KEEP_ROLLED_BACK: Final = timedelta(minutes=5)
# The number of ended transactions that are kept of an environment.
KEEP_PER_ENVIRONMENT: Final = 2000
# Rows that are deleted together: more than one, so that the number decreases to the limit.
TRIMMED_AT_ONCE: Final = 10


def forget_ended(*, now: datetime) -> None:
    """Delete the rows of transactions that ended long enough ago."""
    is_rolled_back = Q(state__in=(State.ROLLED_BACK, State.OPEN))
    InteractiveTransaction.unscoped.filter(  # unscoped: housekeeping
        Q(is_rolled_back, expires_at__lt=now - KEEP_ROLLED_BACK)
        | Q(expires_at__lt=now - KEEP_COMMITTED)
    ).delete()


def trim(scope: Scope) -> None:
    """Delete the oldest ended rows of an environment above the limit, rolled back ones first."""
    ended = InteractiveTransaction.scoped.within(scope).exclude(state=State.OPEN)
    # By the states' names: rows that may be committed are kept for the longest time.
    excess = ended.order_by("state", "-id").values_list("pk", flat=True)[KEEP_PER_ENVIRONMENT:]
    oldest = list(excess[:TRIMMED_AT_ONCE])
    if oldest:
        InteractiveTransaction.scoped.within(scope).filter(pk__in=oldest).delete()
