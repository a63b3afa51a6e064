"""100,000 rows as NDJSON and CSV, compared with psql's COPY; memory of 1,000,000 rows."""

import json
import os
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.load import request
from benchmarks.servers import PLATFORM, RunningServer, Shape, serve

QUERY = (
    "SELECT i AS id, 'name ' || i AS name, i % 2 = 0 AS even, i / 3.0::float8 AS third"
    ", timestamptz '2026-01-01' + i * interval '1 second' AS at FROM generate_series(1, {}) AS i"
)
ROWS = 100_000
MANY_ROWS = 1_000_000
FORMATS = ("ndjson", "csv")
LAST_CHUNK = b"\r\n0\r\n\r\n"


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the ratios of rows per second, and the growth of the processes."""
    with serve(PLATFORM, Shape(), probe="/readyz") as served:
        _fetch(served, _payload(identity, "csv", 1000))
        for name in FORMATS:
            before = _resident_kib(served)
            _fetch(served, _payload(identity, name, MANY_ROWS))
            grown = (_resident_kib(served) - before) / 1024
            print(f"{MANY_ROWS} rows as {name}: {grown:.0f} MiB more memory")
        for name in FORMATS:
            body = _payload(identity, name, ROWS)
            _fetch(served, body)
            ratios = [_copy_s(ROWS) / _fetch(served, body) for _ in range(rounds)]
            print(
                f"{ROWS} rows as {name} / psql COPY: {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f})"
            )


def _payload(identity: Mapping[str, str], name: str, rows: int) -> bytes:
    body = json.dumps({"query": QUERY.format(rows), "format": name}).encode()
    return request("POST", "/v1/sql", body, identity["token"])


def _fetch(served: RunningServer, payload: bytes) -> float:
    """Return the seconds until the last byte was received."""
    started = time.perf_counter()
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as client:
        client.sendall(payload)
        tail = b""
        while not tail.endswith(LAST_CHUNK):
            piece = client.recv(2**20)
            if not piece:
                raise RuntimeError("the stream was cut")
            tail = tail[-len(LAST_CHUNK) :] + piece
    return time.perf_counter() - started


def _copy_s(rows: int) -> float:
    """Return the seconds that psql takes on the same server."""
    psql = shutil.which("psql")
    if psql is None:
        raise RuntimeError("psql is not installed")
    command = [psql, os.environ["ZSQL_CLUSTER_URL"], "-c", f"COPY ({QUERY.format(rows)}) TO STDOUT"]
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def _resident_kib(served: RunningServer) -> int:
    """Return the peak memory of the server's processes."""
    children = Path(f"/proc/{served.pid}/task/{served.pid}/children").read_text().split()
    found = 0
    for pid in children:
        status = Path(f"/proc/{pid}/status").read_text()
        found += int(status.partition("VmHWM:")[2].split()[0])
    return found
