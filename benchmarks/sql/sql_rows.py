"""10,000 rows as JSON, compared with fetchall and orjson in a running server."""

import json
from collections.abc import Mapping

from benchmarks.compare import Target, compare
from benchmarks.load import request, run
from benchmarks.servers import PLATFORM, Shape, serve

ROWS = json.dumps(
    {
        "query": "SELECT i AS id, 'name ' || i AS name, i % 2 = 0 AS even, i / 3.0::float8 AS third"
        ", timestamptz '2026-01-01' + i * interval '1 second' AS at"
        " FROM generate_series(1, 10000) AS i"
    }
).encode()
CONNECTIONS = 4


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the ratios of throughput and of processor time."""
    shape = Shape()
    with (
        serve(PLATFORM, shape, probe="/readyz") as zonal,
        serve("benchmarks.bare", shape, probe="/", BENCH_SESSION=identity["session"]) as bare,
    ):
        ours = request("POST", "/v1/sql", ROWS, identity["token"])
        run(zonal.port, ours, connections=1, seconds=5)
        ratios = compare(
            Target(zonal, [ours]),
            Target(bare, [request("POST", "/rows", ROWS)]),
            connections=CONNECTIONS,
            rounds=rounds,
            seconds=seconds,
        )
    print(f"10,000 rows as JSON / fetchall and orjson: {ratios}")
