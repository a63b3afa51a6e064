"""The latency of a tenant while another environment, or organization, sends as much as it can.

For comparison, the latency while a process keeps one processor busy: the cost of one statement of
another tenant, without the gateway.
"""

import itertools
import json
import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor

from benchmarks.load import Load, request, run
from benchmarks.prepare import organization_tokens, tokens
from benchmarks.servers import PLATFORM, Shape, serve

SHORT = json.dumps({"query": "SELECT 1"}).encode()
# Each statement takes some hundredths of a second of processor time.
HEAVY = json.dumps({"query": "SELECT sum(i) FROM generate_series(1, 300000) AS i"}).encode()
WRITES = json.dumps({"query": "CREATE TEMP TABLE t AS SELECT generate_series(1, 20000)"}).encode()
# More than the gateway runs for one environment in all processes, so that some are refused.
CONNECTIONS = 16
OWN_CONNECTIONS = 2
NO_LOAD = Load(per_second=0, p50_ms=0, p95_ms=0, failures=0, p99_ms=0, count=0)


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the quiet tenant's p95 with the loud tenant's load, relative to its p95 alone."""
    loads = {"short statements": SHORT, "heavy statements": HEAVY, "temporary tables": WRITES}
    with (
        serve(PLATFORM, Shape(), probe="/readyz") as zonal,
        ProcessPoolExecutor(1) as elsewhere,
    ):
        quiet = request("POST", "/v1/sql", SHORT, identity["token"])
        groups = {"one environment": tokens(1), "one organization": organization_tokens()}
        for token in (identity["token"], *itertools.chain(*groups.values())):
            payload = request("POST", "/v1/sql", SHORT, token)
            run(zonal.port, payload, connections=1, seconds=4)
        for group, name in itertools.product(groups, loads):
            payloads = [request("POST", "/v1/sql", loads[name], loud) for loud in groups[group]]
            rows = []
            for _ in range(rounds):
                alone = run(zonal.port, quiet, connections=OWN_CONNECTIONS, seconds=seconds)
                other = elsewhere.submit(_load, zonal.port, payloads, seconds + 1)
                time.sleep(0.5)
                beside = run(zonal.port, quiet, connections=OWN_CONNECTIONS, seconds=seconds)
                rows.append((alone, beside, other.result()))
            _print_medians(f"{group}, {name}", rows)
        _measure_beside_computing(zonal.port, quiet, rounds, seconds)


def _measure_beside_computing(port: int, quiet: bytes, rounds: int, seconds: float) -> None:
    rows = []
    with ProcessPoolExecutor(1) as elsewhere:
        for _ in range(rounds):
            alone = run(port, quiet, connections=OWN_CONNECTIONS, seconds=seconds)
            computing = elsewhere.submit(_compute, seconds + 1)
            time.sleep(0.5)
            beside = run(port, quiet, connections=OWN_CONNECTIONS, seconds=seconds)
            computing.result()
            rows.append((alone, beside, NO_LOAD))
    _print_medians("a process that computes", rows)


def _compute(seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


def _load(port: int, payloads: list[bytes], seconds: float) -> Load:
    return run(port, payloads, connections=CONNECTIONS, seconds=seconds)


def _print_medians(name: str, rows: list[tuple[Load, Load, Load]]) -> None:
    failed = sum(alone.failures + beside.failures for alone, beside, _ in rows)
    if failed:
        raise RuntimeError(f"{failed} requests of the quiet tenant failed")
    tail = statistics.median(beside.p95_ms / alone.p95_ms for alone, beside, _ in rows)
    middle = statistics.median(beside.p50_ms / alone.p50_ms for alone, beside, _ in rows)
    refused = statistics.median(
        other.failures / max(1, other.per_second * 1) for _, _, other in rows
    )
    print(f"beside {name}: p95 {tail:.2f}, p50 {middle:.2f} times alone; {refused:.0f}", flush=True)
