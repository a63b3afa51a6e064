"""The cost of metering for the brain: reads of the object benchmark with and without metering.

The same brains serve all rounds, and a signal switches their metering. Prints their processor time
for each request, and the median of the differences between successive rounds. As a program, this
module is the brain.
"""

import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import load
from benchmarks.cache.cache_gateway import CONNECTIONS, SIZES, brain_with_worker
from benchmarks.servers import processor_s
from tests.edgecache.brain.s3.raw import EMPTY, Signer
from tests.edgecache.cluster import Cluster
from tests.edgecache.forks import Process
from tests.waiting import wait_until

# Signals that a brain does not use itself.
SWITCHES: Final = {True: signal.SIGRTMIN + 1, False: signal.SIGRTMIN + 2}


class SwitchedCluster(Cluster):
    """A brain with metering that can be switched."""

    def _run(self, log: str, command: list[str], environment: dict[str, str]) -> Process:
        if command == ["-m", "edgecache.brain"]:
            command = ["-m", "benchmarks.cache.metering"]
        return super()._run(log, command, environment)


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print a line for each size, signed and not."""
    with (
        tempfile.TemporaryDirectory(prefix="zonal-bench-") as folder,
        brain_with_worker(Path(folder), kind=SwitchedCluster) as cluster,
    ):
        signer = Signer(cluster.tenant(), cluster.url)
        public_name = _fill(cluster, signer)
        for name, size in SIZES.items():
            signed = signer.sign("GET", f"/bench/{size}", payload=EMPTY)
            _compare(cluster, name, f"/{public_name}/{size}", {}, rounds, seconds)
            _compare(cluster, f"{name}, signed", f"/bench/{size}", signed, rounds, seconds)


def _fill(cluster: Cluster, signer: Signer) -> str:
    """Create a public bucket with an object of each size; return its public name."""
    keys = signer.keys
    body = {"name": "bench", "is_public": True}
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", body)
    for size in SIZES.values():
        signer.send("PUT", f"/bench/{size}", os.urandom(size))
        wait_until(partial(_is_held, signer, f"/bench/{size}"))
    name: str = row["public_name"]
    return name


def _is_held(signer: Signer, path: str) -> bool:
    """True if a worker has the object."""
    return signer.send("GET", path, headers={"x-zonal-redirect": "1"}).status == 307


def _compare(
    cluster: Cluster,
    title: str,
    target: str,
    headers: Mapping[str, str],
    rounds: int,
    seconds: float,
) -> None:
    fields = {"host": f"127.0.0.1:{cluster.port}", **headers}
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    request = "\r\n".join([*lines, "", ""]).encode()
    costs: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * rounds + 1):
        # The first round warms up. The order changes after each pair of rounds.
        is_on = number % 4 in {0, 1}
        for pid in cluster.brain_processes():
            os.kill(pid, SWITCHES[is_on])
        began = sum(map(processor_s, cluster.brain_processes()))
        found = load.run(cluster.port, request, connections=CONNECTIONS, seconds=seconds)
        if found.failures:
            raise RuntimeError(f"{title} failed {found.failures} times")
        used = sum(map(processor_s, cluster.brain_processes())) - began
        if number:
            costs[is_on].append(used / (found.per_second * seconds) * 1e6)
    pairs = list(zip(costs[True], costs[False], strict=True))
    shares = [with_it / without - 1 for with_it, without in pairs]
    print(
        f"{title:16} {statistics.median(costs[False]):8.1f} us without,"
        f" {statistics.median(costs[True]):8.1f} us with: {statistics.median(shares):+.1%}"
        f" (half of the pairs within {_quartiles(shares)})"
    )


def _quartiles(shares: list[float]) -> str:
    low, _, high = statistics.quantiles(shares, n=4)
    return f"{low:+.1%} to {high:+.1%}"


def serve() -> int:
    """Run a brain; two signals switch its metering."""
    from edgecache.brain.__main__ import main  # noqa: PLC0415 - reads the settings
    from edgecache.brain.metering.meters import Meters  # noqa: PLC0415 - with the brain

    real = Meters.record

    def switch(number: int, _frame: Any) -> None:
        is_on = number == SWITCHES[True]
        Meters.record = real if is_on else _nothing  # type: ignore[method-assign]

    for number in SWITCHES.values():
        signal.signal(number, switch)
    return main([])


def _nothing(*_read: Any, **_fields: Any) -> None:
    return None


if __name__ == "__main__":
    sys.exit(serve())
