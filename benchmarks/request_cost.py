"""The cost of a request compared with a bare Django view, as ratios of throughput."""

import json
from collections.abc import Mapping

from benchmarks.compare import Target, compare
from benchmarks.load import request, run
from benchmarks.prepare import tokens
from benchmarks.servers import PLATFORM, Shape, serve

STATEMENT = json.dumps({"query": "SELECT 1"}).encode()
CONNECTIONS = (8, 24)
# One alone may not run as many statements at once as there are connections.
TENANTS = 6


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Alternate Zonal and the baseline for some rounds; print medians of the ratios."""
    shape = Shape()
    with (
        serve(PLATFORM, shape, probe="/readyz") as zonal,
        serve("benchmarks.bare", shape, probe="/", BENCH_SESSION=identity["session"]) as bare,
    ):
        callers = tokens(TENANTS)
        whoami = [request("GET", "/v1/whoami", token=token) for token in callers]
        statement = [request("POST", "/v1/sql", STATEMENT, token) for token in callers]
        # Their databases are made before anything is measured.
        run(zonal.port, statement, connections=2, seconds=8)
        pairs = {
            "GET /v1/whoami / bare view, one indexed query": (whoami, request("GET", "/row")),
            "POST /v1/sql SELECT 1 / bare view, same statement": (
                statement,
                request("POST", "/sql", STATEMENT),
            ),
        }
        for name, (ours, theirs) in pairs.items():
            for connections in CONNECTIONS:
                ratios = compare(
                    Target(zonal, ours),
                    Target(bare, [theirs]),
                    connections=connections,
                    rounds=rounds,
                    seconds=seconds,
                )
                print(f"{name}, {connections} connections: {ratios}", flush=True)
