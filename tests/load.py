"""Requests one after the other while something happens to a server."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.waiting import wait_until

# Processes that start in the meantime need processor time, too.
PAUSE_S: Final = 0.1
LIMIT_S: Final = 120.0


@dataclass
class Load:
    """What callers saw: how many requests each had answered, and what failed."""

    done: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def goes_on(self, requests: int = 5) -> None:
        """Wait until every caller has got this many more responses."""
        before = dict(self.done)
        wait_until(
            lambda: (
                self.failures or all(self.done[name] >= before[name] + requests for name in before)
            ),
            timeout_s=LIMIT_S,
        )


@contextmanager
def load(callers: Mapping[str, Callable[[], object]]) -> Iterator[Load]:
    """Have every caller repeat its request, each in a thread, until the block ends.

    A request that raises has failed; its caller stops.
    """
    seen, over = Load(), threading.Event()

    def repeat(name: str, request: Callable[[], object]) -> None:
        while not over.wait(PAUSE_S):
            try:
                request()
            except Exception as error:  # noqa: BLE001 - whatever it was, the request failed
                seen.failures.append(f"{name}, after {seen.done[name]}: {error!r}")
                return
            seen.done[name] += 1

    seen.done.update(dict.fromkeys(callers, 0))
    threads = [threading.Thread(target=repeat, args=pair) for pair in callers.items()]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join()
