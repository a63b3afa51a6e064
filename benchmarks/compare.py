"""Compare two servers in alternating rounds: ratios per round, as the machine's speed varies."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.load import Load, run
from benchmarks.servers import RunningServer

MAX_FAILED: Final = 0.01


@dataclass(frozen=True, slots=True)
class Target:
    """A server and the requests sent to it in turn."""

    served: RunningServer
    payloads: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Ratios:
    """The performance of one server relative to the other, as medians over the rounds.

    rate: answers per second, with the minimum and the maximum ratio of a round.
    p50: the time of an answer.
    processor: the server's processor time for an answer.
    failed: the share of answers other than 200.
    """

    rate: float
    low: float
    high: float
    p50: float
    processor: float
    failed: float

    def __str__(self) -> str:
        """Return a line."""
        line = (
            f"throughput {self.rate:.2f} ({self.low:.2f} to {self.high:.2f}), "
            f"p50 {self.p50:.2f} times, processor time {self.processor:.2f} times the baseline's"
        )
        return f"{line}, {self.failed:.2%} refused" if self.failed else line


def compare(
    ours: Target, theirs: Target, *, connections: int, rounds: int, seconds: float
) -> Ratios:
    """Run both in alternating rounds.

    Raises RuntimeError if more than MAX_FAILED of the answers are not 200: refusals are fast, so
    the rates would be meaningless.
    """
    for target in (ours, theirs):
        run(target.served.port, target.payloads, connections=connections, seconds=1)
    rows = [
        (measured(ours, connections, seconds), measured(theirs, connections, seconds))
        for _ in range(rounds)
    ]
    loads = [load for row in rows for load, _ in row]
    failed = sum(load.failures for load in loads) / sum(load.per_second * seconds for load in loads)
    if failed > MAX_FAILED:
        raise RuntimeError(f"{failed:.1%} of the requests failed")
    rates = [mine.per_second / baseline.per_second for (mine, _), (baseline, _) in rows]
    return Ratios(
        rate=statistics.median(rates),
        low=min(rates),
        high=max(rates),
        p50=statistics.median(mine.p50_ms / yard.p50_ms for (mine, _), (yard, _) in rows),
        processor=statistics.median(mine / yard for (_, mine), (_, yard) in rows),
        failed=failed,
    )


def measured(target: Target, connections: int, seconds: float) -> tuple[Load, float]:
    """Return the result of a round, and the server's processor time for each response."""
    before = target.served.processor_s()
    load = run(target.served.port, target.payloads, connections=connections, seconds=seconds)
    spent = target.served.processor_s() - before
    return load, spent / (load.per_second * seconds)
