"""The cost of a request compared with two baselines, as ratios of throughput.

The baselines run on gunicorn's own threaded worker with eight threads in each of two processes,
the platform as in production.
"""

import json
import statistics
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from benchmarks.compare import Target, compare
from benchmarks.load import request, run
from benchmarks.prepare import development_token, tokens
from benchmarks.servers import BASELINE, PLATFORM, RunningServer, Shape, serve
from benchmarks.sql.idle import held_statements

STATEMENT = json.dumps({"query": "SELECT 1"}).encode()
CONNECTIONS = (8, 24)
# Several organizations, because one may not run as many statements as there are connections.
TENANTS = 6
# Connections of other organizations, while SELECT 1 is measured.
HELD_TENANTS = 10
HELD_CONNECTIONS = 200


@contextmanager
def _servers(identity: Mapping[str, str], development: str) -> Iterator[tuple[RunningServer, ...]]:
    """Run the platform and the baselines."""
    session = {"BENCH_SESSION": identity["session"]}
    organization = {"ZAUTH_DEV_ORG_ID": development}
    with ExitStack() as stack:
        yield (
            stack.enter_context(serve(PLATFORM, Shape(), probe="/readyz", **organization)),
            stack.enter_context(serve("benchmarks.bare", BASELINE, probe="/", **session)),
            stack.enter_context(serve("benchmarks.drf", BASELINE, probe="/")),
        )


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Run Zonal and the baselines in alternating rounds; print medians of the ratios."""
    callers = tokens(TENANTS)
    others = tokens(HELD_TENANTS)
    development, organization_id = development_token()
    with _servers(identity, organization_id) as (zonal, bare, drf):
        whoami = [request("GET", "/v1/whoami", token=token) for token in callers]
        statement = [request("POST", "/v1/sql", STATEMENT, token) for token in callers]
        # Create their databases before the measurement.
        first = [request("POST", "/v1/sql", STATEMENT, token) for token in (*callers, *others)]
        run(zonal.port, first, connections=2, seconds=10)

        def show(name: str, ours: list[bytes], baseline: Target, *numbers: int) -> None:
            for connections in numbers:
                ratios = compare(
                    Target(zonal, ours),
                    baseline,
                    connections=connections,
                    rounds=rounds,
                    seconds=seconds,
                )
                print(f"{name}, {connections} connections: {ratios}", flush=True)

        row = Target(bare, [request("GET", "/row")])
        show("GET /v1/whoami / bare view, one indexed query", whoami, row, *CONNECTIONS)
        select = Target(bare, [request("POST", "/sql", STATEMENT)])
        show("POST /v1/sql SELECT 1 / bare view, same statement", statement, select, *CONNECTIONS)
        with held_statements(zonal.port, others, connections=HELD_CONNECTIONS):
            show(f"the same, {HELD_CONNECTIONS} others hold slow statements", statement, select, 8)
        jwt = Target(drf, [request("GET", "/whoami", token=_jwt(drf))])
        show("GET /v1/whoami / DRF + simplejwt, one query", whoami, jwt, 1, 16)
        user = Target(zonal, whoami[:1])
        by_token = [request("GET", "/v1/whoami", token=development)]
        show("GET /v1/whoami, development token / user's token", by_token, user, 1)
        _tail(zonal, whoami, rounds=rounds, seconds=seconds)


def _jwt(drf: RunningServer) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{drf.port}/token") as answer:
        return str(answer.read().decode())


def _tail(zonal: RunningServer, payloads: list[bytes], *, rounds: int, seconds: float) -> None:
    """Print the p99 at 8 connections relative to the median at one."""
    ratios = []
    for _ in range(rounds):
        alone = run(zonal.port, payloads, connections=1, seconds=seconds)
        together = run(zonal.port, payloads, connections=8, seconds=seconds)
        ratios.append(together.p99_ms / alone.p50_ms)
    low, high = min(ratios), max(ratios)
    tail = statistics.median(ratios)
    print(f"whoami, p99 at 8 / median at 1: {tail:.1f} ({low:.1f} to {high:.1f})", flush=True)
