"""PUTs of 1 KiB, 64 KiB and 1 MiB through the object API, beside what the machine itself does.

Signed by 16 connections, every object with a key and bytes of its own. Signatures are computed
before a round, so that the client is not the bottleneck. The machine's measures: `SELECT 1` on one
psycopg connection, and 1 KiB appended and synced to one file, each per second.
"""

import contextlib
import hashlib
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from benchmarks import load
from benchmarks.cache_gateway import CONNECTIONS, SIZES, brain_with_worker
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster, Keys

BUCKET: Final = "bench"
MARK_BYTES: Final = 16
# More a second than a round writes; further signatures are computed on the way.
PREPARED_PER_S: Final = {"1 KiB": 1500, "64 KiB": 1200, "1 MiB": 300}
MACHINE_S: Final = 1.0
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Round:
    """Writes a second, the slowest hundredth, the brain's processor time for one."""

    per_second: float
    p99_ms: float
    brain_ms: float


def measure(_identity: dict[str, str], *, rounds: int, seconds: float) -> None:
    """Run a brain with one worker, and print a line for each size."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zonal-bench-")))
        cluster = stack.enter_context(brain_with_worker(folder))
        keys = cluster.tenant()
        cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": BUCKET})
        numbers = itertools.count()
        results: dict[str, list[Round]] = {name: [] for name in SIZES}
        machine: list[tuple[float, float]] = []
        for _ in range(rounds):
            machine.append((_selects_per_s(cluster.database_url), _syncs_per_s(folder)))
            for name, found in results.items():
                found.append(_round(cluster, keys, name, numbers, seconds=seconds))
        _print(results, machine)


def _print(results: dict[str, list[Round]], machine: list[tuple[float, float]]) -> None:
    selects, syncs = (statistics.median(values) for values in zip(*machine, strict=True))
    print(f"the machine: SELECT 1 {selects:.0f}/s, fsync {syncs:.0f}/s")
    print(f"{'PUT':10} {'writes/s':>10} {'p99 ms':>8} {'brain ms':>9}")
    for name, rows in results.items():
        rate, p99, brain = (
            statistics.median(values)
            for values in zip(
                *((row.per_second, row.p99_ms, row.brain_ms) for row in rows), strict=True
            )
        )
        print(f"{name:10} {rate:10.0f} {p99:8.1f} {brain:9.2f}")


def _round(
    cluster: Cluster, keys: Keys, name: str, numbers: Iterator[int], *, seconds: float
) -> Round:
    shared = os.urandom(SIZES[name] - MARK_BYTES)
    requests = _requests(Signer(keys, cluster.url), shared, numbers)
    prepared = list(itertools.islice(requests, int(PREPARED_PER_S[name] * seconds)))
    payloads = (
        b"".join((head, shared, mark)) for head, mark in itertools.chain(prepared, requests)
    )
    begun = _processor_s(cluster.brain.pid)
    found = load.run(cluster.port, payloads, connections=CONNECTIONS, seconds=seconds)
    spent = _processor_s(cluster.brain.pid) - begun
    if found.failures:
        raise RuntimeError(f"{found.failures} writes of {name} failed")
    return Round(found.per_second, found.p99_ms, spent * 1000 / (found.per_second * seconds))


def _requests(
    signer: Signer, shared: bytes, numbers: Iterator[int]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield heads, each with the last bytes of its body; the bytes before them are shared."""
    begun = hashlib.sha256(shared)
    for number in numbers:
        mark = number.to_bytes(MARK_BYTES, "big")
        digest = begun.copy()
        digest.update(mark)
        target = f"/{BUCKET}/{number % 100}/{number}"
        headers = signer.sign("PUT", target, payload=digest.hexdigest())
        lines = [f"PUT {target} HTTP/1.1", f"content-length: {len(shared) + MARK_BYTES}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        yield "\r\n".join([*lines, "", ""]).encode(), mark


def _selects_per_s(url: str) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        return _per_second(lambda: connection.execute("SELECT 1").fetchone())


def _syncs_per_s(folder: Path) -> float:
    with (folder / "synced").open("wb", buffering=0) as file:

        def sync() -> None:
            file.write(bytes(2**10))
            os.fsync(file)

        return _per_second(sync)


def _per_second(do: Callable[[], object]) -> float:
    begun = time.perf_counter()
    for count in itertools.count(1):
        do()
        if (spent := time.perf_counter() - begun) > MACHINE_S:
            return count / spent
    raise AssertionError


def _processor_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
