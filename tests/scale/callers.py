"""Callers that repeat their requests while something happens, and how long each went without."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.waiting import wait_until

PAUSE_S: Final = 0.05
LIMIT_S: Final = 120.0


@dataclass(frozen=True)
class Reply:
    """What a request got. retry_after: the header, "" without it."""

    status: int
    retry_after: str = ""
    text: str = ""

    @property
    def is_refusal(self) -> bool:
        """True if it says that the client shall come again."""
        return self.status in {429, 503} and self.retry_after != ""


@dataclass
class Seen:
    """What the callers saw.

    done: the times of each caller's successes, by time.monotonic(). refused: how many answers were
    429 or 503 with Retry-After. failures: everything else.
    """

    done: dict[str, list[float]]
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def go_on(self, times: int = 5) -> None:
        """Wait until each caller has succeeded this many further times."""
        before = {name: len(found) for name, found in self.done.items()}
        wait_until(
            lambda: all(len(self.done[name]) >= before[name] + times for name in before),
            timeout_s=LIMIT_S,
        )

    def longest_s(self, since: float, *names: str) -> float:
        """Return the longest time without a success of any of these callers, or of all.

        since: a time before which each has succeeded. What has not ended does not count.
        """
        return max(
            later - max(earlier, since)
            for name in names or self.done
            for earlier, later in pairwise(tuple(self.done[name]))
            if later > since
        )


@contextmanager
def callers(
    requests: Mapping[str, Callable[[], Reply]], *, pause_s: float = PAUSE_S
) -> Iterator[Seen]:
    """Have every caller repeat its request, each in a thread, until the block ends."""
    seen, over = Seen({name: [] for name in requests}), threading.Event()

    def repeat(name: str, request: Callable[[], Reply]) -> None:
        while not over.wait(pause_s):
            started = time.monotonic()
            try:
                reply = request()
            except Exception as error:  # noqa: BLE001 - whatever it was, the request failed
                seen.failures.append(f"{name}, after {time.monotonic() - started:.1f} s: {error!r}")
                continue
            if reply.status < 300:
                seen.done[name].append(time.monotonic())
            elif reply.is_refusal:
                seen.refused[name] += 1
            else:
                seen.failures.append(f"{name}: {reply}")

    threads = [threading.Thread(target=repeat, args=pair) for pair in requests.items()]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join()
