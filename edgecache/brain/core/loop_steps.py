"""Long computations on the event loop, in short steps, so that requests run in between.

Only one step of all computations runs in a loop iteration; organizations take turns.
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, TypeVar

from edgecache.brain.core.errors import Overloaded
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.runtime.fair_shares import Shares

T = TypeVar("T")
R = TypeVar("R")

# Calls of some microseconds each.
STEP: Final = 100

_TURNS: Final = Shares(1, refusal=Overloaded, wait_s=None)


async def in_steps(work: Callable[[T], R], items: Iterable[T], *, step: int = STEP) -> list[R]:
    """Return the results of ``work`` for each item. step: how many items run together.

    Raises what ``work`` raises.
    """
    loop, share_key = asyncio.get_running_loop(), SHARE_KEY.get()
    left, results = iter(items), list[R]()
    while True:
        await _TURNS.take(share_key)
        try:
            done = [work(item) for item in islice(left, step)]
        finally:
            loop.call_soon(_TURNS.give_back, share_key)
        results += done
        if len(done) < step:
            return results
