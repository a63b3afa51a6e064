"""Wake the dispatcher once the caller's transaction is committed.

The rows are the outbox: a wake-up that is lost costs the time until the next minute's.
"""

from typing import Final

from django.db import transaction
from procrastinate.exceptions import AlreadyEnqueued

from platform_site.lib.jobs import job

DISPATCH: Final = "accounts.webhooks.dispatch"


def wake() -> None:
    """Queue the dispatcher after the commit, unless it waits for its turn already.

    Not within the transaction: its lock would make every other one that has an event wait for it.
    """
    transaction.on_commit(_enqueue, robust=True)


def _enqueue() -> None:
    try:
        with transaction.atomic():
            job(DISPATCH, queueing_lock=DISPATCH).defer()
    except AlreadyEnqueued:
        return
