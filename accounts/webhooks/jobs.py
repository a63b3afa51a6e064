"""Wake the dispatcher once the caller's transaction is committed.

The rows are the outbox: a wake-up that is lost costs the time until the next minute's.
"""

from typing import Final

from django.db import transaction
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.manager import JobManager
from procrastinate.tasks import configure_task

DISPATCH: Final = "accounts.webhooks.dispatch"
_MANAGER: Final = JobManager(DjangoConnector())


def wake() -> None:
    """Queue the dispatcher after the commit, unless it waits for its turn already.

    Not within the transaction: its lock would make every other one that has an event wait for it.
    """
    transaction.on_commit(_enqueue, robust=True)


def _enqueue() -> None:
    job = configure_task(name=DISPATCH, job_manager=_MANAGER, queueing_lock=DISPATCH)
    try:
        with transaction.atomic():
            job.defer()
    except AlreadyEnqueued:
        return
