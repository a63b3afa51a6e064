"""What one more of each thing takes, for ``benchmarks.sizes``: rows, databases, processes, wakeups.

Bytes of rows are those of tables with their indexes. Prints processor times, which other load of
the machine changes little.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
from django.db import connection

from benchmarks import load
from benchmarks.cache.cache_gateway import brain_with_worker
from benchmarks.cache.object_rows import ROWS, TABLES
from benchmarks.platform.billing import FIRST_CONSUMER, LINES
from benchmarks.prepare import tokens
from benchmarks.servers import PLATFORM, RunningServer, Shape, serve
from tests.processes import children_of

ORGANIZATIONS: Final = 500
ENVIRONMENTS: Final = 20_000
ROWS_FILLED: Final = 200_000
STOCK: Final = 20
DATABASES: Final = 1000
IDLE_S: Final = 60.0
LISTENERS: Final = (0, 1, 8, 32)
WARM_S: Final = 8.0
WRITERS: Final = 8
MIB: Final = 2**20
TICKS: Final = os.sysconf("SC_CLK_TCK")

ALL_BYTES: Final = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = 'public'::regnamespace"
)
EVENTS: Final = """
    INSERT INTO audit_auditevent (id, {columns}) SELECT gen_random_uuid(), {columns}
    FROM (SELECT * FROM audit_auditevent LIMIT 1) AS entry, generate_series(1, %(size)s)
"""
COLUMNS: Final = """
    SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
    WHERE table_name = 'audit_auditevent' AND column_name <> 'id'
"""
BRAIN_LINES: Final = """
    INSERT INTO brain_usageline (line_id, organization_id, environment_pk, bucket_id, bucket_name,
        used_at, storage_byte_hours)
    SELECT gen_random_uuid(), n, n, n, 'bucket-' || n, now(), 1000000000
    FROM generate_series(1, %(size)s) n
"""
BUCKET: Final = (
    "INSERT INTO brain_bucket (organization_id, environment_pk, name, public_name)"
    " VALUES (1, 1, 'bench', %s) RETURNING id"
)
STORE: Final = "INSERT INTO brain_store (name, tag, is_active) VALUES ('file://', %s, true)"
WRITE: Final = "INSERT INTO written (note) VALUES ('x')"
NOTIFY: Final = "SELECT pg_notify('bench', repeat('x', 100))"
# As a brain acknowledges a write of another one.
ACK: Final = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('bench', 'x')"


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print all of it. rounds: not used."""
    measure_rows()
    measure_databases()
    measure_processes(seconds)
    measure_notifications(seconds)


# --- rows -----------------------------------------------------------------------------------


def measure_rows() -> None:
    """Print the bytes of a row of each table that grows."""
    from audit import trail  # noqa: PLC0415 - needs django.setup()
    from billing.usage import charges_and_shares  # noqa: PLC0415 - as above
    from organizations.audit_tags import OrganizationTag  # noqa: PLC0415 - as above

    _grown("organization, with a user and a session", ORGANIZATIONS, lambda: tokens(ORGANIZATIONS))
    _grown("environment, with its placement", ENVIRONMENTS, _environments)
    trail.add(None, OrganizationTag.CLI_MEMBER_CREATE, organization_id=1)
    columns = _value(COLUMNS)
    _filled("audit event", EVENTS.format(columns=columns))
    billed = {"kinds": ["storage"], "kinds_count": 1, "first": FIRST_CONSUMER, "consumers": 100}
    billed |= {"nodes": 1, "operator": 1, "operators": 1, "lines": ROWS_FILLED}
    _filled("billing: usage line", LINES, **billed)
    _grown("billing: its charge", ROWS_FILLED, charges_and_shares.settle)
    _filled("brain: usage line", BRAIN_LINES)
    _run(STORE, [uuid.uuid4().hex])
    values = {"bucket": _value(BUCKET, [uuid.uuid4().hex]), "node": uuid.uuid4()}
    values |= {"organization": 1, "environment": 1, "size": ROWS_FILLED}
    for statement in ROWS:
        _run(statement, values)
    for table in TABLES:
        taken = _value("SELECT pg_total_relation_size(%s::regclass)", [table])
        print(f"{table}: {taken / ROWS_FILLED:.0f} bytes")


def _environments() -> None:
    from environments.models import Environment, Organization  # noqa: PLC0415 - needs setup()
    from sqlgateway.clusters import servers  # noqa: PLC0415 - as above
    from sqlgateway.databases import stock  # noqa: PLC0415 - as above
    from sqlgateway.models import Database  # noqa: PLC0415 - as above

    home = Organization.objects.earliest("pk")
    made = Environment.objects.bulk_create(
        Environment(organization=home, slug=f"env-{n}", name=f"Environment {n}")
        for n in range(ENVIRONMENTS)
    )
    cluster = servers.open_to(home.pk).get()
    placed = []
    for environment in made:
        row = stock.new_row(cluster)
        row.organization, row.environment, row.state = home, environment, Database.State.DROPPED
        placed.append(row)
    Database.objects.bulk_create(placed, 1000)


def _filled(name: str, statement: str, **values: Any) -> None:
    _grown(name, ROWS_FILLED, lambda: _run(statement, {"size": ROWS_FILLED, **values}))


def _grown(name: str, count: int, do: Callable[[], object]) -> None:
    before = _value(ALL_BYTES)
    do()
    print(f"{name}: {(_value(ALL_BYTES) - before) / count:.0f} bytes", flush=True)


def _run(statement: str, values: Any = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _value(statement: str, values: Any = None) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]


# --- databases ------------------------------------------------------------------------------


def measure_databases() -> None:
    """Print what environments' databases take on a cluster."""
    from sqlgateway.databases import stock  # noqa: PLC0415 - needs django.setup()

    stock.refill(1)
    began = time.monotonic()
    stock.refill(1 + STOCK)
    print(f"an environment's database: made in {(time.monotonic() - began) / STOCK * 1e3:.0f} ms")
    url = os.environ["ZSQL_CLUSTER_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        row = server.execute(
            "SELECT max(pg_database_size(oid)) FROM pg_database WHERE NOT datistemplate"
            " AND datname <> 'postgres'"
        ).fetchone()
        print(f"its size: {(row or [0])[0] / MIB:.1f} MiB")
        pid = _postmaster(server)
        print(f"idle cluster of {STOCK} databases: {_idle_ms(pid):.1f} ms a second", flush=True)
        names = [f"many_{number}" for number in range(DATABASES)]
        for strategy in ("wal_log", "file_copy"):
            part, names = names[: DATABASES // 10], names[DATABASES // 10 :]
            print(
                f"CREATE DATABASE … STRATEGY {strategy}: {_create(server, part, strategy):.0f} ms"
            )
        print(f"the others, wal_log: {_create(server, names, 'wal_log'):.0f} ms each")
        print(f"idle cluster of {DATABASES} databases: {_idle_ms(pid):.1f} ms a second")
        times = []
        for name in names[:: len(names) // 20]:
            began = time.monotonic()
            psycopg.connect(urlsplit(url)._replace(path=f"/{name}").geturl()).close()
            times.append((time.monotonic() - began) * 1e3)
        print(f"first connection to one: {statistics.median(times):.0f} ms")
        kept = [
            psycopg.connect(urlsplit(url)._replace(path=f"/{name}").geturl()) for name in names[:50]
        ]
        for each in kept:
            each.execute("SELECT count(*) FROM pg_class")
        pss = [_pss(each.info.backend_pid) for each in kept]
        print(f"an idle connection: {statistics.median(pss):.1f} MiB")
        for each in kept:
            each.close()


def _create(server: psycopg.Connection, names: list[str], strategy: str) -> float:
    began = time.monotonic()
    for name in names:
        statement = f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY {strategy}"
        server.execute(statement.encode())
    return (time.monotonic() - began) / len(names) * 1e3


def _postmaster(server: psycopg.Connection) -> int:
    return int(_stat(server.info.backend_pid)[1])


def _idle_ms(pid: int) -> float:
    before = server_s(pid)
    time.sleep(IDLE_S)
    return (server_s(pid) - before) / IDLE_S * 1e3


def server_s(pid: int) -> float:
    """Return the processor time of a PostgreSQL server, with processes that have ended."""
    spent = sum(int(each) for each in _stat(pid)[11:15])
    for child in children_of(pid):
        try:
            spent += sum(int(each) for each in _stat(child)[11:13])
        except OSError:
            continue
    return spent / TICKS


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


# --- processes ------------------------------------------------------------------------------


def measure_processes(seconds: float) -> None:
    """Print the memory of each process, idle and after requests: proportional set size."""
    token = tokens(1)[0]
    with serve(PLATFORM, Shape(), probe="/readyz") as web:
        _print_memory("web process, idle", children_of(web.pid))
        _print_requests(web, load.request("GET", "/v1/whoami", token=token), seconds)
        body = b'{"query": "SELECT 1"}'
        _print_requests(web, load.request("POST", "/v1/sql", body, token), seconds)
        body = b'{"query": "SELECT generate_series(1, 1000)"}'
        _print_requests(web, load.request("POST", "/v1/sql", body, token), seconds)
        _print_memory("web process, busy", children_of(web.pid))
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "procrastinate", "worker", "--concurrency=4"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(20)
        _print_memory("task worker, idle", [worker.pid])
    finally:
        worker.terminate()
        worker.wait()
    with (
        tempfile.TemporaryDirectory(prefix="zonal-bench-") as folder,
        brain_with_worker(Path(folder)) as cluster,
    ):
        _print_memory("brain, idle", cluster.brain_processes())
        _print_memory("cache worker, idle", [cluster.processes[-1].pid])


def _print_requests(web: RunningServer, payload: bytes, seconds: float) -> None:
    """Print the processor time of a request in the web processes and in both PostgreSQL servers."""
    with (
        psycopg.connect(os.environ["DATABASE_URL"]) as control,
        psycopg.connect(os.environ["ZSQL_CLUSTER_URL"]) as tenants,
    ):
        servers = [_postmaster(control), _postmaster(tenants)]
        load.run(web.port, payload, connections=8, seconds=WARM_S)
        before = [web.processor_s(), *map(server_s, servers)]
        found = load.run(web.port, payload, connections=8, seconds=seconds * 2)
        after = [web.processor_s(), *map(server_s, servers)]
    if found.failures:
        raise RuntimeError(f"{found.failures} requests failed")
    each = [(end - start) / found.count * 1e3 for start, end in zip(before, after, strict=True)]
    line = payload.partition(b" HTTP/1.1")[0].decode() + payload.rpartition(b"\r\n")[2].decode()
    print(f"{line}: web {each[0]:.2f} ms, control {each[1]:.2f} ms, tenants {each[2]:.2f} ms")


def _print_memory(name: str, pids: list[int]) -> None:
    print(f"{name}: {statistics.mean(map(_pss, pids)):.0f} MiB", flush=True)


def _pss(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("\nPss:")[2].partition("kB")[0]) / 1024


# --- notifications --------------------------------------------------------------------------


def measure_notifications(seconds: float) -> None:
    """Print commits a second of writers that notify, by the number of listening connections."""
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE TABLE written (id bigserial PRIMARY KEY, note text)")
        pid = _postmaster(server)
        for name, statements in (("without NOTIFY", [WRITE]), ("that only acknowledge", [ACK])):
            rate, cpu = _commits(url, pid, seconds, statements)
            print(f"commits {name}: {rate:.0f} a second, {cpu:.3f} ms of the server each")
        for count in LISTENERS:
            listening = [psycopg.connect(url, autocommit=True) for _ in range(count)]
            for each in listening:
                each.execute("LISTEN bench")
            ends = threading.Event()
            readers = [threading.Thread(target=_listen, args=(each, ends)) for each in listening]
            for thread in readers:
                thread.start()
            rate, cpu = _commits(url, pid, seconds, [WRITE, NOTIFY])
            print(f"with NOTIFY, {count} listeners: {rate:.0f} a second, {cpu:.3f} ms each")
            ends.set()
            for thread in readers:
                thread.join()


def _listen(listening: psycopg.Connection, ends: threading.Event) -> None:
    with listening:
        while not ends.is_set():
            for _ in listening.notifies(timeout=0.5):
                pass


def _commits(url: str, pid: int, seconds: float, statements: Sequence[str]) -> tuple[float, float]:
    """Return commits a second of some writers, and the server's milliseconds for each."""
    until = time.monotonic() + seconds

    def write(_: int) -> int:
        done = 0
        with psycopg.connect(url) as own:
            while time.monotonic() < until:
                for statement in statements:
                    own.execute(statement.encode())
                own.commit()
                done += 1
        return done

    before = server_s(pid)
    with ThreadPoolExecutor(WRITERS) as pool:
        done = sum(pool.map(write, range(WRITERS)))
    return done / seconds, (server_s(pid) - before) / done * 1e3
