"""Group deletes: objects of one bucket whose deletions wait together are deleted together.

While one transaction of a bucket runs, its next one collects. So a bucket that many clients empty
holds one connection to the database, and a commit serves all who wait for it.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Final

from edgecache.brain.background import BackgroundTasks, retrieve
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.fair_share import charge_bucket
from edgecache.brain.storage import builtin_origin
from edgecache.brain.values import BucketInfo

# As many locks as one transaction may take, see ``commits.KEYS_LOCKED``.
GROUP_KEYS: Final = 64

Waiting = dict[str, asyncio.Future[None]]


class GroupDeletes:
    """This brain's deletions of single objects from the built-in origin."""

    def __init__(self, coherence: Coherence) -> None:
        self._coherence = coherence
        # By bucket: what waits while one of its transactions runs.
        self._waiting: dict[int, Waiting] = {}
        self._tasks = BackgroundTasks()

    async def delete(self, bucket: BucketInfo, key: str) -> None:
        """Delete an object; one that is not there is no error. Continues when cancelled.

        Raises NoSuchBucket, DatabaseUnavailable.
        """
        waiting = self._waiting.get(bucket.id)
        if waiting is None:
            waiting = self._waiting[bucket.id] = {}
            self._tasks.add(self._run(bucket, waiting))
        outcome = waiting.get(key)
        if outcome is None:
            outcome = waiting[key] = asyncio.get_running_loop().create_future()
            # Retrieved here, for the callers may be gone.
            outcome.add_done_callback(retrieve)
        await asyncio.shield(outcome)

    async def finish(self) -> None:
        """Wait until everything is deleted."""
        await self._tasks.finish()

    async def _run(self, bucket: BucketInfo, waiting: Waiting) -> None:
        # The request that started it may be an anonymous client's, or another bucket's.
        charge_bucket(bucket)
        # Those that arrive in this turn of the loop go together.
        await asyncio.sleep(0)
        while waiting:
            keys = list(islice(waiting, GROUP_KEYS))
            group = [waiting.pop(key) for key in keys]
            await self._delete(bucket, keys, group)
        del self._waiting[bucket.id]

    async def _delete(
        self, bucket: BucketInfo, keys: Sequence[str], group: Sequence[asyncio.Future[None]]
    ) -> None:
        try:
            await builtin_origin.delete(self._coherence, bucket, keys)
        except Exception as exc:  # noqa: BLE001 - each caller raises it
            for outcome in group:
                outcome.set_exception(exc)
        else:
            for outcome in group:
                outcome.set_result(None)
