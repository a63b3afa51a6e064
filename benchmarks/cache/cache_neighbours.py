"""The latency of a small signed read or write while another organization keeps the brain busy.

The other organization sends requests of one kind on many connections, as fast as possible. Prints
latencies in milliseconds without and with this load.
"""

import base64
import contextlib
import hashlib
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.cache.cache_gateway import brain_with_worker
from benchmarks.cache.cache_writes import MARK_BYTES, puts
from benchmarks.load import Load, run
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster

SIZES = {"1 KiB": 2**10, "64 KiB": 2**16, "1 MiB": 2**20}
KEYS = 1000
OWN_CONNECTIONS = 2
WRITERS = 16
# The maximum size of a request's head is 16 KiB.
LONG = 15_000


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the reader's latency with each kind of load."""
    with contextlib.ExitStack() as stack:
        elsewhere = stack.enter_context(ProcessPoolExecutor(1))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zonal-bench-")))
        cluster = stack.enter_context(brain_with_worker(folder))
        reader, greedy = (_tenant(cluster) for _ in range(2))
        own = _bytes(reader, "GET", f"/bench/{SIZES['1 KiB']}")
        print(f"{'others':42} {'alone p50, p95':>16} {'beside p50, p95':>18}   theirs/s")
        for name, connections, payload in _loads(greedy):
            rows = []
            for _ in range(rounds):
                alone = run(cluster.port, own, connections=OWN_CONNECTIONS, seconds=seconds)
                other = elsewhere.submit(_load, cluster.port, payload, connections, seconds + 1)
                time.sleep(0.5)
                beside = run(cluster.port, own, connections=OWN_CONNECTIONS, seconds=seconds)
                rows.append((alone, beside, other.result()))
            _print_medians(f"{connections} x {name}", rows)
        for name in SIZES:
            rows = []
            for _ in range(rounds):
                alone = _write(reader, "1 KiB", 1, seconds)
                other = elsewhere.submit(_write, greedy, name, WRITERS, seconds + 1)
                time.sleep(0.5)
                beside = _write(reader, "1 KiB", 1, seconds)
                rows.append((alone, beside, other.result()))
            if any(other.failures for *_, other in rows):
                raise RuntimeError(f"writes of {name} failed")
            _print_medians(f"PUT of 1 KiB beside {WRITERS} x PUT of {name}", rows)


def _write(signer: Signer, name: str, connections: int, seconds: float) -> Load:
    """Write objects of a size, each with a key of its own."""
    shared = os.urandom(SIZES[name] - MARK_BYTES)
    requests = puts(signer, shared, itertools.count(time.time_ns()))
    payloads = (b"".join((head, shared, mark)) for head, mark in requests)
    port = urlsplit(signer.url).port or 80
    return run(port, payloads, connections=connections, seconds=seconds)


def _tenant(cluster: Cluster) -> Signer:
    """Return a new tenant's signer. Its bucket has objects in memory, and many keys."""
    keys = cluster.tenant()
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "bench"})
    signer = Signer(keys, cluster.url)
    for size in SIZES.values():
        signer.send("PUT", f"/bench/{size}", os.urandom(size))
    for number in range(KEYS):
        signer.send("PUT", f"/bench/many/{number:05}", b"x")
    for size in SIZES.values():
        for _ in range(3):
            signer.send("GET", f"/bench/{size}")
    return signer


def _loads(signer: Signer) -> Iterator[tuple[str, int, bytes]]:
    """Yield the kinds of load: name, connections, request."""
    for name, size in SIZES.items():
        yield f"GET of {name}", 64, _bytes(signer, "GET", f"/bench/{size}")
    yield "GET of what does not exist", 64, _bytes(signer, "GET", "/bench/none")
    yield f"listing of {KEYS:,} keys", 64, _bytes(signer, "GET", "/bench?list-type=2")
    many = b"<Delete>%b</Delete>" % (b"<Object><Key>k</Key></Object>" * 74_000)
    yield "XML with 148,000 elements", 4, _xml(signer, many)
    yield "XML with a text of 4 MiB", 4, _xml(signer, b"<Delete>%b</Delete>" % (b"k" * 4_190_000))
    yield "path of 15 kB", 16, _plain(signer, "/bench/" + "%41" * (LONG // 3))
    yield "query of 15 kB", 16, _plain(signer, "/bench/k?" + "&".join(["%41"] * (LONG // 4)))
    for field in ("cache-control", "if-none-match"):
        long = {field: ",".join(['"a"'] * (LONG // 4))}
        yield f"{field} of 15 kB", 16, _bytes(signer, "GET", f"/bench/{SIZES['1 KiB']}", long)


def _xml(signer: Signer, body: bytes) -> bytes:
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    return _bytes(signer, "POST", "/bench?delete=", {"content-md5": digest}, body)


def _bytes(
    signer: Signer,
    method: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> bytes:
    """Return a signed request."""
    signed = signer.sign(method, target, headers, payload=hashlib.sha256(body).hexdigest())
    if body:
        signed["content-length"] = str(len(body))
    return _head(method, target, signed) + body


def _plain(signer: Signer, target: str) -> bytes:
    """Return a request without a signature."""
    return _head("GET", target, {"host": signer.url.partition("//")[2]})


def _head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    fields = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *fields, "", ""]).encode()


def _load(port: int, payload: bytes, connections: int, seconds: float) -> Load:
    return run(port, payload, connections=connections, seconds=seconds)


def _print_medians(name: str, rows: list[tuple[Load, Load, Load]]) -> None:
    failed = sum(alone.failures + beside.failures for alone, beside, _ in rows)
    if failed:
        raise RuntimeError(f"{failed} requests of the reader failed")
    alone = (_median(row[0].p50_ms for row in rows), _median(row[0].p95_ms for row in rows))
    beside = (_median(row[1].p50_ms for row in rows), _median(row[1].p95_ms for row in rows))
    theirs = _median(row[2].per_second for row in rows)
    print(
        f"{name:42} {alone[0]:8.2f} {alone[1]:7.2f} {beside[0]:10.2f} {beside[1]:7.2f}"
        f" {theirs:10.0f}",
        flush=True,
    )


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)
