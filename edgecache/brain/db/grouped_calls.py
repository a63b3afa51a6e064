"""Calls of the database that are batched, one call at a time for each bucket.

While one call of a bucket is running, its next one collects keys. So a crowd of its readers uses
one connection, and one call serves all of them. A caller joins a call that has not begun yet, never
a running one, so the result is never older than the caller's request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from itertools import islice
from typing import Final, Generic, TypeVar

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.futures import retrieve

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Keys of one call: more would be no cheaper for each, and make the first ones wait. A call may lock
# as many, see ``commits.KEYS_LOCKED``.
GROUP_KEYS: Final = 64


class GroupedCalls(Generic[K, V]):
    """One call for the keys of many callers. call: returns the results by key."""

    def __init__(self, call: Callable[[list[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._call = call
        # By bucket: what waits while one of its calls runs.
        self._waiting: dict[ShareKey, dict[K, asyncio.Future[V | None]]] = {}
        self._tasks = BackgroundTasks()

    async def get(self, key: K) -> V | None:
        """Return the result for a key, None if the call returned none.

        Callers with the same key share its result. Continues when cancelled; raises what the call
        raises.
        """
        # A client's own share would delay the others in the batch.
        share_key = SHARE_KEY.get()[:2]
        waiting = self._waiting.get(share_key)
        if waiting is None:
            waiting = self._waiting[share_key] = {}
            self._tasks.add(self._run(share_key, waiting))
        outcome = waiting.get(key)
        if outcome is None:
            outcome = waiting[key] = asyncio.get_running_loop().create_future()
            # Retrieved here, because the callers may be gone.
            outcome.add_done_callback(retrieve)
        return await asyncio.shield(outcome)

    async def _run(self, share_key: ShareKey, waiting: dict[K, "asyncio.Future[V | None]"]) -> None:
        SHARE_KEY.set(share_key)
        # Callers that arrive in this iteration of the loop share a call.
        await asyncio.sleep(0)
        while waiting:
            keys = list(islice(waiting, GROUP_KEYS))
            outcomes = {key: waiting.pop(key) for key in keys}
            try:
                found = await self._call(keys)
            except Exception as exc:  # noqa: BLE001 - each caller raises it
                for outcome in outcomes.values():
                    outcome.set_exception(exc)
            else:
                for key, outcome in outcomes.items():
                    outcome.set_result(found.get(key))
        del self._waiting[share_key]
