"""What a compressed answer costs the brain, and what many of them cost another organization.

Texts are parts of this repository's scripts, each with a number. *First*: the body is read,
compressed and sent; *next*: sent from memory.
"""

import contextlib
import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.cache.cache_gateway import brain_with_worker
from benchmarks.load import Load, run
from benchmarks.servers import processor_s
from tests.edgecache.brain.s3.raw import EMPTY, Signer, send
from tests.edgecache.cluster import Cluster

ROOT: Final = Path(__file__).resolve().parents[2]
CODINGS: Final = ("identity", "br", "zstd", "gzip")
TEXT_BYTES: Final = 100 * 2**10
TEXTS: Final = 100
LONG_BYTES: Final = 2**20 - 100
# Compressed three times each they are more than the memory for them.
LONG_TEXTS: Final = 200
GREEDY: Final = 16


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print bytes and processor time of an answer, then a small read beside a flood of texts."""
    with contextlib.ExitStack() as stack:
        elsewhere = stack.enter_context(ProcessPoolExecutor(1))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zonal-bench-")))
        cluster = stack.enter_context(brain_with_worker(folder))
        texts = Texts(cluster, TEXT_BYTES, TEXTS)
        print(f"{'100 KiB':10} {'bytes':>8} {'first':>12} {'next':>12}   processor time")
        for coding in CODINGS:
            texts.print_costs(coding, seconds * rounds)
        own = _own_read(cluster)
        many = Texts(cluster, LONG_BYTES, LONG_TEXTS)
        for coding in CODINGS:
            other = elsewhere.submit(
                _flood, cluster.port, many.requests(coding), GREEDY, rounds * seconds + 1
            )
            time.sleep(0.5)
            beside = run(cluster.port, own, connections=2, seconds=rounds * seconds)
            print(
                f"a read of 1 KiB beside {GREEDY} x texts of 1 MiB, {coding}: {beside.p50_ms:.1f},"
                f" {beside.p95_ms:.1f}, {beside.p99_ms:.1f} ms; theirs {other.result():.0f}/s"
            )


class Texts:
    """A public bucket of a new tenant with different texts of one size."""

    def __init__(self, cluster: Cluster, size: int, count: int) -> None:
        self.cluster, self.count = cluster, count
        keys = cluster.tenant()
        body = {"name": "bench", "is_public": True}
        row = cluster.call("POST", f"/v1/buckets?{keys.scope}", body)
        self.path = f"/p/{row['public_name']}"
        scripts = sorted((ROOT / "console/static/console").rglob("*.js"))
        source = b"".join(path.read_bytes() for path in scripts)
        source *= -(-2 * size // len(source))
        signer = Signer(keys, cluster.url)
        for number in range(count):
            start = number * 1009 % (len(source) - size)
            text = (b"// %06d\n" % number + source[start:])[:size]
            headers = {"content-type": "text/javascript"}
            if signer.send("PUT", f"/bench/{number}", text, headers).status != 200:
                raise RuntimeError("a text was not stored")

    def requests(self, coding: str) -> list[bytes]:
        """Return a request for each text."""
        fields = f"Host: 127.0.0.1:{self.cluster.port}\r\nAccept-Encoding: {coding}\r\n\r\n"
        return [
            f"GET {self.path}/{number} HTTP/1.1\r\n{fields}".encode()
            for number in range(self.count)
        ]

    def print_costs(self, coding: str, seconds: float) -> None:
        """Print the median size, and the processor time of a first and of a next answer."""
        url, fields = self.cluster.url, {"accept-encoding": coding}
        first_us = self._cost(iter(self.requests(coding)), 60.0)
        sizes = [
            len(send(url, "GET", f"{self.path}/{number}", fields).body)
            for number in range(self.count)
        ]
        next_us = self._cost(itertools.cycle(self.requests(coding)), seconds)
        size = sorted(sizes)[self.count // 2]
        print(f"{coding:10} {size:8} {first_us:9.0f} us {next_us:9.0f} us")

    def _cost(self, requests: Iterator[bytes], seconds: float) -> float:
        pids = self.cluster.brain_processes()
        began = sum(map(processor_s, pids))
        found = run(self.cluster.port, requests, connections=1, seconds=seconds)
        if found.failures:
            raise RuntimeError(f"{found.failures} failed")
        return (sum(map(processor_s, pids)) - began) / found.count * 1e6


def _own_read(cluster: Cluster) -> bytes:
    """Return a signed read of 1 KiB by another tenant."""
    keys = cluster.tenant()
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "own"})
    signer = Signer(keys, cluster.url)
    signer.send("PUT", "/own/1", bytes(1024))
    signed = signer.sign("GET", "/own/1", payload=EMPTY)
    lines = ["GET /own/1 HTTP/1.1", *(f"{name}: {value}" for name, value in signed.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def _flood(port: int, payloads: Sequence[bytes], connections: int, seconds: float) -> float:
    found: Load = run(port, payloads, connections=connections, seconds=seconds)
    return found.per_second
