"""Wake the dispatcher after the caller's transaction has committed.

The rows are the outbox: a lost wakeup only delays them until the next minute's job.
"""

from typing import Final

from django.db import transaction
from procrastinate.exceptions import AlreadyEnqueued

from common.jobs import job

DISPATCH: Final = "outbox.webhooks.dispatch"


def wake() -> None:
    """Queue the dispatcher after the commit, unless it is queued already.

    Not within the transaction: the job's lock would block all other transactions with events.
    """
    transaction.on_commit(_enqueue, robust=True)


def _enqueue() -> None:
    try:
        with transaction.atomic():
            job(DISPATCH, queueing_lock=DISPATCH).defer()
    except AlreadyEnqueued:
        return
