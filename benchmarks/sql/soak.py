"""Ten minutes of mixed load: memory and connections of the web processes must not grow.

``--seconds`` is the length of one of ``--rounds`` samples: 20 rounds of 30 s are ten minutes.
"""

import contextlib
import http.client
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from benchmarks.prepare import tokens
from benchmarks.servers import PLATFORM, RunningServer, Shape, serve

TENANTS = 6
THREADS = 12
Answered = tuple[int, bytes]


class Client:
    """One keep-alive connection with a tenant's token."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answered:
        """Send a request and read its answer."""
        sent = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        self._link.request(method, path, sent, self._headers | headers)
        response = self._link.getresponse()
        return response.status, response.read()

    def sql(self, query: str, **members: Any) -> Answered:
        """Run a statement."""
        return self.call("POST", "/v1/sql", {"query": query, **members})

    def hang_up(self) -> Answered:
        """Disconnect during a statement."""
        body = json.dumps({"query": "SELECT pg_sleep(20)"}).encode()
        self._link.request("POST", "/v1/sql", body, self._headers)
        self._link.close()
        return 0, b""


def _transaction(client: Client) -> Answered:
    status, body = client.call("POST", "/v1/sql/transactions")
    if status != http.HTTPStatus.CREATED:
        return status, body
    path = f"/v1/sql/transactions/{json.loads(body)['id']}"
    for number in (1, 2):
        statement = {"number": number, "query": "INSERT INTO soaked VALUES (1, 'in')"}
        client.call("POST", f"{path}/statements", statement)
    ending = random.choice([("POST", f"{path}/commit"), ("DELETE", path)])  # noqa: S311 - a load
    return client.call(*ending)


ROWS = "SELECT g AS id, repeat('x', 50) AS text FROM generate_series(1, {}) AS g"
CSV = b"id,text\n" + b"7,imported\n" * 500
WORK: list[Callable[[Client], Answered]] = [
    lambda client: client.sql("SELECT 1"),
    lambda client: client.call("GET", "/v1/whoami"),
    lambda client: client.sql("INSERT INTO soaked VALUES ($1, 'x')", params=[1]),
    lambda client: client.sql(ROWS.format(5_000)),
    lambda client: client.sql(ROWS.format(50_000), format="ndjson"),
    lambda client: client.sql(ROWS.format(50_000), format="csv"),
    lambda client: client.sql("SELECT nonesuch"),
    lambda client: client.sql("SELECT pg_sleep(5)", timeout_ms=50),
    lambda client: client.sql("SELECT array_fill(1, ARRAY[300000])"),
    lambda client: client.call(
        "POST", "/v1/sql/import?table=soaked&columns=id,text", CSV, **{"Content-Type": "text/csv"}
    ),
    lambda client: client.sql("DELETE FROM soaked"),
    lambda client: client.call("GET", "/v1/sql/schema"),
    _transaction,
    Client.hang_up,
]


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print memory, open files and the tenants' connections after each round."""
    over, answers = threading.Event(), Counter[int]()
    with serve(PLATFORM, Shape(), probe="/readyz") as zonal:
        callers = tokens(TENANTS)
        for token in callers:
            Client(zonal.port, token).sql("CREATE TABLE IF NOT EXISTS soaked (id int, text text)")
        threads = [
            threading.Thread(target=_work, args=(zonal.port, callers[at % TENANTS], over, answers))
            for at in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, rounds + 1):
                over.wait(seconds)
                print(
                    f"{number * seconds:.0f} s: {_sizes(zonal)}, {_backends()} backends", flush=True
                )
        finally:
            over.set()
            for thread in threads:
                thread.join()
    print(f"answers by status (0: left early): {dict(sorted(answers.items()))}", flush=True)


def _work(port: int, token: str, over: threading.Event, answers: Counter[int]) -> None:
    client = Client(port, token)
    while not over.is_set():
        try:
            answers[random.choice(WORK)(client)[0]] += 1  # noqa: S311 - a load
        except (OSError, http.client.HTTPException):
            answers[-1] += 1
            client = Client(port, token)


def _sizes(served: RunningServer) -> str:
    """Return the resident memory and open files of each web process."""
    children = Path(f"/proc/{served.pid}/task/{served.pid}/children").read_text().split()
    sizes = []
    for child in children:
        with contextlib.suppress(FileNotFoundError):
            status = Path(f"/proc/{child}/status").read_text()
            kib = int(status.partition("VmRSS:")[2].split()[0])
            sizes.append(
                f"{kib // 1024} MiB and {len(list(Path(f'/proc/{child}/fd').iterdir()))} files"
            )
    return " / ".join(sizes)


def _backends() -> int:
    with psycopg.connect(settings.SQL.cluster_url, dbname="postgres") as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'zd%'"
        ).fetchone()
    return int(row[0]) if row else 0
