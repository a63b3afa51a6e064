"""Two hundred concurrent requests to fifty environments: only answers, 429 and 503 may occur."""

import json
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import BinaryIO

from benchmarks.load import request
from benchmarks.prepare import tokens
from benchmarks.servers import PLATFORM, Shape, serve

ORGANIZATIONS = 50
CONNECTIONS = 200
STATEMENTS = (
    "SELECT 1",
    "SELECT pg_sleep(0.2)",
    "SELECT sum(i) FROM generate_series(1, 300000) AS i",
    "SELECT g, repeat('x', 100) FROM generate_series(1, 5000) AS g",
)
REFUSALS = ("429", "503")


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the number of each status; raise if one is unexpected or has no Retry-After."""
    callers = tokens(ORGANIZATIONS)
    with (
        serve(PLATFORM, Shape(), probe="/readyz") as zonal,
        ThreadPoolExecutor(CONNECTIONS) as pool,
    ):
        bodies = cycle(json.dumps({"query": text}).encode() for text in STATEMENTS)
        payloads = [
            request("POST", "/v1/sql", next(bodies), token)
            for token in islice(cycle(callers), CONNECTIONS)
        ]
        ends = time.monotonic() + rounds * seconds
        seen: Counter[str] = Counter()
        for counts in pool.map(lambda one: Counter(_statuses(zonal.port, one, ends)), payloads):
            seen += counts
    print(f"{CONNECTIONS} connections, {ORGANIZATIONS} organizations: {dict(seen)}", flush=True)
    if set(seen) - {"200", *REFUSALS}:
        raise RuntimeError("an answer that no client expects")


def _statuses(port: int, payload: bytes, ends: float) -> Iterator[str]:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        answers = sock.makefile("rb")
        while time.monotonic() < ends:
            sock.sendall(payload)
            status = answers.readline().split()[1].decode()
            headers = dict(_headers(answers))
            answers.read(int(headers[b"content-length"]))
            if status in REFUSALS:
                time.sleep(int(headers[b"retry-after"]))
            yield status


def _headers(answers: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    while line := answers.readline().strip():
        name, _, value = line.partition(b":")
        yield name.lower(), value.strip()
