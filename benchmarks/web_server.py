"""Which gunicorn worker kind, how many threads, pool or persistent connections: measured.

The candidates run side by side and take turns in many short rounds; each round's figure is taken
relative to that round's first candidate, since the machine's speed drifts by more than they differ.
"""

import statistics
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.load import request, run
from benchmarks.servers import PLATFORM, Shape, serve

# Together they stay below the throw-away cluster's max_connections.
CANDIDATES = (
    Shape("gthread", 2, 8, 0),
    Shape("gthread", 2, 4, 0),
    Shape("gthread", 2, 8, 4),
    Shape("gthread", 2, 16, 4),
    Shape("sync", 2, 1, 0),
    Shape("sync", 4, 1, 0),
)


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print each candidate's throughput and p95 relative to the first."""
    payload = request("GET", "/v1/whoami", token=identity["token"])
    with ExitStack() as stack:
        ports = [
            stack.enter_context(serve(PLATFORM, shape, probe="/readyz")).port
            for shape in CANDIDATES
        ]
        for port in ports:
            run(port, payload, connections=16, seconds=0.5)
        loads = [
            [run(port, payload, connections=16, seconds=seconds) for port in ports]
            for _ in range(rounds)
        ]
    for index, shape in enumerate(CANDIDATES):
        rate = statistics.median(one[index].per_second / one[0].per_second for one in loads)
        tail = statistics.median(one[index].p95_ms / one[0].p95_ms for one in loads)
        print(f"{shape}: throughput {rate:.2f}, p95 {tail:.2f} (first = 1)")
