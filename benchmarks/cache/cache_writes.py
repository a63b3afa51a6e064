"""PUTs of 1 KiB, 64 KiB and 1 MiB, and DELETEs, compared with the speed of the machine.

Requests are signed and sent on 16 connections; every object has its own key and bytes. Signatures
are computed before a round, so that the client is not the bottleneck. The machine's speed: `SELECT
1` on one psycopg connection, and 1 KiB appended and synced to a file, per second. If Ceph is
installed, objects are also written through a brain with a RADOS gateway as its store, and to the
gateway itself.
"""

import contextlib
import hashlib
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg

from benchmarks import load
from benchmarks.cache.cache_gateway import CONNECTIONS, SIZES, brain_with_worker
from benchmarks.servers import processor_s
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.ceph.rados import ACCESS_KEY, SECRET_KEY, Rados, missing
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect

BUCKET: Final = "bench"
MARK_BYTES: Final = 16
# More per second than a round writes; if needed, more signatures are computed in the round.
PREPARED_PER_S: Final = {"1 KiB": 1500, "64 KiB": 1200, "1 MiB": 300, "DELETE": 2000}
MACHINE_S: Final = 1.0


@dataclass(slots=True)
class Target:
    """A server to which objects are written.

    pids: the processes that are measured, with their children.
    written: the numbers of its objects.
    deleted: how many of them were deleted, from the first one.
    """

    name: str
    url: str
    keys: Keys
    pids: list[int]
    written: list[int] = field(default_factory=list)
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Round:
    """Writes per second, p99 of the latency, and the server's processor time for each write."""

    per_second: float
    p99_ms: float
    server_ms: float


def measure(_identity: dict[str, str], *, rounds: int, seconds: float) -> None:
    """Run a brain with one worker, and print a line for each size."""
    with contextlib.ExitStack() as stack:
        folder = _folder(stack)
        cluster = stack.enter_context(brain_with_worker(folder))
        targets = [_brain("files", cluster)]
        if not missing():
            targets += _on_ceph(stack)
        numbers = itertools.count()
        results: dict[tuple[str, str], list[Round]] = {}
        machine: list[tuple[float, float]] = []
        # The targets alternate, but not the sizes: the disk's background work for one size would be
        # measured with another one, and a file system without a journal creates files slowly for
        # minutes after others were deleted.
        for name in [*SIZES, "DELETE"]:
            machine.append((_selects_per_s(cluster.database_url), _syncs_per_s(folder)))
            for _, target in itertools.product(range(rounds), targets):
                found = _round(target, name, numbers, rounds=rounds, seconds=seconds)
                results.setdefault((name, target.name), []).append(found)
        _print(results, machine)


def _folder(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zonal-bench-")))


def _brain(name: str, cluster: Cluster) -> Target:
    keys = cluster.tenant()
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": BUCKET})
    return Target(name, cluster.url, keys, cluster.brain_processes())


def _on_ceph(stack: contextlib.ExitStack) -> list[Target]:
    """Return a brain on a RADOS gateway, and another gateway's bucket by itself."""
    rados = Rados(_folder(stack))
    stack.callback(rados.stop)
    rados.start()
    keys = Keys(0, 0, ACCESS_KEY, SECRET_KEY)
    client = connect(keys, rados.url)
    for bucket in (BUCKET, "managed"):
        client.create_bucket(Bucket=bucket)
    client.close()
    store = {
        "ZBRAIN_STORE_URL": f"s3://{ACCESS_KEY}@managed?endpoint={rados.url}",
        "ZBRAIN_STORE_SECRET_KEY": SECRET_KEY,
    }
    cluster = stack.enter_context(brain_with_worker(_folder(stack), store))
    gateway = Target("the gateway itself", rados.url, keys, [rados.processes["gateway"].pid])
    return [_brain("a RADOS gateway", cluster), gateway]


def _print(results: dict[tuple[str, str], list[Round]], machine: list[tuple[float, float]]) -> None:
    selects, syncs = (statistics.median(values) for values in zip(*machine, strict=True))
    print(f"the machine: SELECT 1 {selects:.0f}/s, fsync {syncs:.0f}/s")
    print(f"{'write':10} {'to':20} {'writes/s':>10} {'p99 ms':>8} {'server ms':>9}")
    for (name, target), rows in results.items():
        rate, p99, server = (
            statistics.median(values)
            for values in zip(
                *((row.per_second, row.p99_ms, row.server_ms) for row in rows), strict=True
            )
        )
        print(f"{name:10} {target:20} {rate:10.0f} {p99:8.1f} {server:9.2f}")


def _round(
    target: Target, name: str, numbers: Iterator[int], *, rounds: int, seconds: float
) -> Round:
    signer = Signer(target.keys, target.url)
    if name in SIZES:
        shared = os.urandom(SIZES[name] - MARK_BYTES)
        payloads = _noted(target, puts(signer, shared, numbers), shared, name, seconds)
    else:
        # Each round deletes a part of the objects, and may end before its time is over.
        count = min(int(PREPARED_PER_S[name] * seconds), len(target.written) // rounds)
        payloads = _deletes(target, signer, count)
    started = sum(map(processor_s, target.pids))
    port = urlsplit(target.url).port or 80
    found = load.run(port, payloads, connections=CONNECTIONS, seconds=seconds)
    spent = sum(map(processor_s, target.pids)) - started
    if found.failures:
        raise RuntimeError(f"{found.failures} writes of {name} to {target.name} failed")
    return Round(found.per_second, found.p99_ms, spent * 1000 / found.count)


def _noted(
    target: Target,
    requests: Iterator[tuple[bytes, bytes]],
    shared: bytes,
    name: str,
    seconds: float,
) -> Iterator[bytes]:
    """Return an iterator of PUTs, which records the objects."""
    prepared = list(itertools.islice(requests, int(PREPARED_PER_S[name] * seconds)))

    def payloads() -> Iterator[bytes]:
        for head, mark in itertools.chain(prepared, requests):
            target.written.append(int.from_bytes(mark, "big"))
            yield b"".join((head, shared, mark))

    return payloads()


def _deletes(target: Target, signer: Signer, count: int) -> Iterator[bytes]:
    """Return an iterator of DELETEs of objects that were written, up to a number."""
    prepared = []
    for number in target.written[target.deleted : target.deleted + count]:
        path = _target(number)
        lines = [f"DELETE {path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in signer.sign("DELETE", path).items()]
        prepared.append("\r\n".join([*lines, "", ""]).encode())

    def payloads() -> Iterator[bytes]:
        for payload in prepared:
            target.deleted += 1
            yield payload

    return payloads()


def _target(number: int) -> str:
    return f"/{BUCKET}/{number % 100}/{number}"


def puts(signer: Signer, shared: bytes, numbers: Iterator[int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the head and the last bytes of each request; other bytes of bodies are shared."""
    started = hashlib.sha256(shared)
    for number in numbers:
        mark = number.to_bytes(MARK_BYTES, "big")
        digest = started.copy()
        digest.update(mark)
        target = _target(number)
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
    started = time.perf_counter()
    for count in itertools.count(1):
        do()
        if (spent := time.perf_counter() - started) > MACHINE_S:
            return count / spent
    raise AssertionError
