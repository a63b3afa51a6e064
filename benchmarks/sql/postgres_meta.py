"""``POST /v1/sql`` compared with postgres-meta's ``POST /query``, on the same database.

postgres-meta is Supabase's server for SQL over HTTP. It must be installed outside of the repository
(``npm install @supabase/postgres-meta``); POSTGRES_META is the folder with its ``node_modules``. It
connects as the same role as the gateway, and opens a connection for each request, as it does for
Supabase's dashboard.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from benchmarks.compare import Target, compare
from benchmarks.load import request, run
from benchmarks.prepare import tokens
from benchmarks.servers import PLATFORM, RunningServer, Shape, serve
from tests.ports import accepts, free_port
from tests.waiting import wait_until

SERVER = "node_modules/@supabase/postgres-meta/dist/server/server.js"
STATEMENTS = {
    "SELECT 1": "SELECT 1 AS one",
    "1,000 rows": "SELECT g AS id, 'row ' || g AS name, g * 0.5 AS half, now() AS at "
    "FROM generate_series(1, 1000) AS g",
    "10,000 rows": "SELECT g AS id, 'row ' || g AS name, g * 0.5 AS half, now() AS at "
    "FROM generate_series(1, 10000) AS g",
}
CONNECTIONS = 8
# Several organizations, because the limits of one are below this load.
TENANTS = 4


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Run both in alternating rounds; print medians of the ratios."""
    folder = os.environ.get("POSTGRES_META")
    if folder is None:
        print("skipped: POSTGRES_META does not name the folder of the npm package", flush=True)
        return
    with serve(PLATFORM, Shape(), probe="/readyz") as zonal:
        callers = tokens(TENANTS)
        run(zonal.port, _ours("SELECT 1", callers), connections=2, seconds=5)
        with _postgres_meta(Path(folder)) as theirs:
            for name, statement in STATEMENTS.items():
                ratios = compare(
                    Target(zonal, _ours(statement, callers)),
                    Target(theirs, [request("POST", "/query", _body(statement))]),
                    connections=CONNECTIONS,
                    rounds=rounds,
                    seconds=seconds,
                )
                print(f"/v1/sql / postgres-meta, {name}: {ratios}", flush=True)


def _ours(statement: str, callers: list[str]) -> list[bytes]:
    return [request("POST", "/v1/sql", _body(statement), token) for token in callers]


def _body(statement: str) -> bytes:
    return json.dumps({"query": statement}).encode()


@contextmanager
def _postgres_meta(folder: Path) -> Iterator[RunningServer]:
    port = free_port()
    environment = os.environ | {
        "PG_META_HOST": "127.0.0.1",
        "PG_META_PORT": str(port),
        "PG_META_DB_URL": _database_url(),
        "NODE_ENV": "production",
    }
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(
            ["node", folder / SERVER], env=environment, stdout=nowhere, stderr=nowhere
        )
    try:
        wait_until(lambda: accepts(port))
        yield RunningServer(port, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _database_url() -> str:
    """Return the connection string of one tenant's database, as its admin role."""
    from sqlgateway.clusters.placements import placement_of  # noqa: PLC0415 - as above
    from sqlgateway.models import Database  # noqa: PLC0415 - after django.setup()

    rows = Database.objects.filter(state=Database.State.ACTIVE)
    placement = placement_of(rows.select_related("cluster").order_by("-claimed_at")[0])
    login, network = placement.login("admin"), dict(placement.address.network)
    host, port = quote(network.get("host", "localhost"), safe=""), network.get("port", "5432")
    return f"postgresql://{login.user}:{login.password}@{host}/{login.dbname}?port={port}"
