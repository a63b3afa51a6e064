"""What requests and upkeep cost in a brain with 10,000 objects, and in one with 10,000,000.

The objects are rows that SQL makes in the brain's own tables; only those that are written here have
bytes. Requests are sent on one connection. Prints for each: the median time, the processor time of
the brain, and that of PostgreSQL, in milliseconds.
"""

import asyncio
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from benchmarks import load
from benchmarks.cache.cache_gateway import brain_with_worker
from benchmarks.cache.object_rows import fill, key_of, sizes_of_tables
from benchmarks.servers import processor_s
from edgecache.brain.metering import usage_lines
from edgecache.brain.nodes import repair
from edgecache.brain.upkeep.lifecycle import Lifecycle
from tests.edgecache.brain.brains import Brain, running
from tests.edgecache.brain.s3.raw import EMPTY, Signer
from tests.edgecache.cluster import Cluster

SIZES: Final = (10_000, 10_000_000)
REQUESTS: Final = 400
FEW: Final = 10
PAGES: Final = 20
IDLE_S: Final = 10.0
STOP_S: Final = 60.0
BUCKET: Final = "bench"
LIFECYCLE: Final = (
    b"<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status><Filter><Prefix>top0/</Prefix>"
    b"</Filter><Expiration><Days>3650</Days></Expiration></Rule></LifecycleConfiguration>"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one request or step, in milliseconds."""

    took: float
    brain: float
    database: float

    def __str__(self) -> str:
        return f"{self.took:12.1f} {self.brain:8.2f} {self.database:8.2f}"


class OneBrain(Cluster):
    """A brain without workers: its copies are on a node that does not answer."""

    def start(self) -> "Cluster":
        self.workers, self.brains = 0, 1
        return super().start()

    def stop_brain(self) -> None:
        self.brain.terminate()
        self.brain.wait(STOP_S)

    def start_brain(self) -> None:
        self.restart(0)
        self._wait(lambda: self.call("GET", "/health"))


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print both sizes side by side."""
    tables = []
    for size in SIZES:
        with (
            tempfile.TemporaryDirectory(prefix="zonal-bench-") as folder,
            brain_with_worker(Path(folder), kind=OneBrain) as cluster,
        ):
            tables.append(Filled(cluster, size).costs())
    print(f"{'ms: median, brain, PostgreSQL':34}" + "".join(f"{size:>30,}" for size in SIZES))
    for name in tables[0]:
        print(f"{name:34}" + "".join(f"{table[name]!s:>30}" for table in tables))


class Filled:
    """A brain whose database has objects."""

    def __init__(self, cluster: Any, size: int) -> None:
        self.cluster: OneBrain = cluster
        self.size = size
        keys = cluster.tenant()
        row = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": BUCKET})
        self.keys, self.signer = keys, Signer(keys, cluster.url)
        self.signer.send("PUT", f"/{BUCKET}?lifecycle=", LIFECYCLE)
        self.cluster.stop_brain()
        with psycopg.connect(cluster.database_url, autocommit=True) as connection:
            began = time.monotonic()
            fill(connection, int(row["id"]), (keys.organization_id, keys.environment_pk), size)
            print(f"{size:,} objects: filled in {time.monotonic() - began:.0f} s", flush=True)
            for name, taken in sizes_of_tables(connection):
                print(f"  {name:22} {taken / 2**20:10,.0f} MiB, {taken / size:6.0f} bytes each")
            pid = connection.info.backend_pid
            self.server = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def costs(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, cost in self._requests():
            found[name] = cost
            print(f"  {name:34} {cost}", flush=True)
        self.cluster.stop_brain()
        found |= asyncio.run(self._upkeep())
        return found

    # --- requests ---------------------------------------------------------------------------

    def _requests(self) -> Iterator[tuple[str, object]]:
        self.cluster.start_brain()
        yield "idle, a second", self._of(lambda: time.sleep(IDLE_S), IDLE_S)
        written = [f"/{BUCKET}/{key_of(self.size * n // REQUESTS)}-new" for n in range(REQUESTS)]
        bodies = [os.urandom(1024) for _ in written]
        yield "PUT of 1 KiB", self._sent("PUT", written, bodies)
        self.cluster.stop_brain()
        self.cluster.start_brain()
        yield "GET, not in the brain's memory", self._sent("GET", written)
        yield "GET again", self._sent("GET", written)
        prefixes = [key_of(self.size * n // FEW).rpartition("/")[0] + "/" for n in range(FEW)]
        lists = [f"/{BUCKET}?list-type=2&prefix={each.replace('/', '%2F')}" for each in prefixes]
        yield "LIST of a prefix, 1,000 keys", self._sent("GET", lists)
        root = [f"/{BUCKET}?delimiter=%2F&list-type=2"] * FEW
        yield "LIST of the root by delimiter", self._sent("GET", root)
        yield "DELETE", self._sent("DELETE", written[::2])
        purged = [{"keys": [each[1:]]} for each in written[1::2]]
        yield "purge of a key", self._purged(purged)
        yield (
            "purge of a prefix, 1,000 objects",
            self._purged([{"prefix": f"{BUCKET}/{each}"} for each in prefixes[1:]]),
        )
        whose = f"{self.keys.organization_id}/{self.keys.environment_pk}"
        yield "count of the environment", self._called(f"/v1/environments/{whose}")
        yield "metrics, which count objects", self._called("/v1/metrics")
        rss = Path(f"/proc/{self.cluster.brain.pid}/status").read_text()
        yield "memory of the brain", rss.partition("VmRSS:")[2].partition("kB")[0].strip() + " kB"

    def _sent(self, method: str, targets: Sequence[str], bodies: Sequence[bytes] = ()) -> Cost:
        payloads = []
        for target, body in zip(targets, bodies or [b""] * len(targets), strict=True):
            digest = hashlib.sha256(body).hexdigest() if body else EMPTY
            headers = self.signer.sign(method, target, payload=digest)
            lines = [f"{name}: {value}" for name, value in headers.items()]
            lines.append(f"content-length: {len(body)}")
            head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
            payloads.append(head.encode() + body)
        return self._loaded(self.cluster.port, payloads)

    def _purged(self, asked: Sequence[Mapping[str, object]]) -> Cost:
        tenant = {
            "organization_id": self.keys.organization_id,
            "environment_pk": self.keys.environment_pk,
        }
        payloads = []
        for each in asked:
            body = json.dumps({**tenant, **each}).encode()
            token = self.cluster.secret
            payloads.append(load.request("POST", "/v1/purge", body, token))
        return self._loaded(self.cluster.internal_port, payloads)

    def _called(self, path: str) -> object:
        try:
            return self._of(lambda: self.cluster.call("GET", path), 1)
        except OSError as exc:
            return f"fails: {exc}"

    def _loaded(self, port: int, payloads: Sequence[bytes]) -> Cost:
        taken: list[load.Load] = []

        def run() -> None:
            taken.append(load.run(port, iter(payloads), connections=1, seconds=600))

        found = self._of(run, len(payloads))
        if taken[0].failures or taken[0].count != len(payloads):
            raise RuntimeError(f"{taken[0].failures} of {len(payloads)} requests failed")
        return Cost(taken[0].p50_ms, found.brain, found.database)

    def _of(self, do: Callable[[], object], count: float) -> Cost:
        pids = (self.cluster.brain.pid, self.server)
        began, before = time.monotonic(), [processor_s(pid) for pid in pids]
        do()
        took = time.monotonic() - began
        brain, database = (
            processor_s(pid) - spent for pid, spent in zip(pids, before, strict=True)
        )
        return Cost(*(spent * 1000 / count for spent in (took, brain, database)))

    # --- upkeep -----------------------------------------------------------------------------

    async def _upkeep(self) -> dict[str, object]:
        found: dict[str, object] = {}
        with tempfile.TemporaryDirectory(prefix="zonal-bench-") as folder:
            async with running(self.cluster.database_url, Path(folder)) as brain:
                for name, step in self._steps(brain):
                    found[name] = await self._step(step)
                    print(f"  {name:34} {found[name]}", flush=True)
        return found

    def _steps(self, brain: Brain) -> Iterator[tuple[str, Callable[[], Awaitable[object]]]]:
        collector = brain.garbage_collector
        yield "garbage collection of the above", collector.round
        yield "garbage collection of nothing", collector.round
        yield "storage of an hour", lambda: usage_lines.add_storage(brain.database, clock=time.time)
        yield "usage lines", lambda: usage_lines.page(brain.database, 0, 5000, cuts_all=True)
        lifecycle = Lifecycle(brain.database, brain.coherence, brain.id)
        yield "lifecycle of a tenth of all", lambda: lifecycle.run(now=datetime.now(UTC))

        async def walk() -> None:
            cursor = b""
            for _ in range(PAGES):
                rows = await brain.database.all(repair.PAGE, [50, cursor, repair.STEP])
                cursor = rows[-1].sha256 if rows else b""

        yield f"repair: {PAGES} pages of 1,000 blobs", walk

    async def _step(self, step: Callable[[], Awaitable[object]]) -> object:
        began, own = time.monotonic(), time.process_time()
        before = processor_s(self.server)
        try:
            await step()
        except Exception as exc:  # noqa: BLE001 - what a size breaks is a result
            return f"fails: {exc!r} after {time.monotonic() - began:.0f} s"
        took = time.monotonic() - began
        spent = time.process_time() - own, processor_s(self.server) - before
        return Cost(took * 1000, spent[0] * 1000, spent[1] * 1000)
