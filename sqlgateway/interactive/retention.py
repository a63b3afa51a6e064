"""How long the outcome of a transaction can be asked about, and of how many.

Begin and rollback cost a client next to nothing, so their rows are bounded in number as well.
"""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from platform_site.lib.principals import Scope
from sqlgateway.models import InteractiveTransaction

State = InteractiveTransaction.State

# For that long a commit whose answer was lost can be asked about. After a rollback, as after a
# process that ended, nothing has changed: a client only has to begin again.
KEEP_COMMITTED: Final = timedelta(hours=1)
KEEP_ROLLED_BACK: Final = timedelta(minutes=5)
# Ended ones of an environment. Those of a loop are many a second.
KEEP_PER_ENVIRONMENT: Final = 2000
# More than one, so that an environment over the limit comes down again.
TRIMMED_AT_ONCE: Final = 10


def forget_ended(*, now: datetime) -> None:
    """Delete the rows of transactions that ended long enough ago."""
    is_rolled_back = Q(state__in=(State.ROLLED_BACK, State.OPEN))
    InteractiveTransaction.unscoped.filter(  # unscoped: housekeeping
        Q(is_rolled_back, expires_at__lt=now - KEEP_ROLLED_BACK)
        | Q(expires_at__lt=now - KEEP_COMMITTED)
    ).delete()


def trim(scope: Scope) -> None:
    """Delete the oldest ended rows of an environment beyond the limit, rolled back ones first."""
    ended = InteractiveTransaction.scoped.within(scope).exclude(state=State.OPEN)
    # The names of the states are in this order: what may be committed is kept longest.
    excess = ended.order_by("state", "-id").values_list("pk", flat=True)[KEEP_PER_ENVIRONMENT:]
    oldest = list(excess[:TRIMMED_AT_ONCE])
    if oldest:
        InteractiveTransaction.scoped.within(scope).filter(pk__in=oldest).delete()
