"""Compare threads that stay with a busy connection with gunicorn's own worker.

The candidates alternate in many short rounds. A round's figures are relative to the first candidate
in that round, because the machine's speed varies more than they differ.
"""

import json
import statistics
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.compare import Target, measured
from benchmarks.load import Load, request, run
from benchmarks.prepare import tokens
from benchmarks.servers import PLATFORM, Shape, serve

# Together they stay below the throw-away cluster's max_connections.
CANDIDATES = (
    Shape(),
    Shape("gthread", threads=64),
    Shape("gthread", threads=8),
)
# Limits are high, because the cost of requests is measured, not their admission.
UNLIMITED = {"ZSQL_RUNNING_PER_ORGANIZATION": "15"}
CONNECTIONS = 12
TENANTS = 3
# The result of a round, and the processor time of an answer.
Round = tuple[Load, float]
STATEMENT = json.dumps({"query": "SELECT 1"}).encode()


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print each candidate's throughput, p95 and processor time relative to the first."""
    callers = tokens(TENANTS)
    whoami = [request("GET", "/v1/whoami", token=token) for token in callers]
    statement = [request("POST", "/v1/sql", STATEMENT, token) for token in callers]
    with ExitStack() as stack:
        served = [
            stack.enter_context(serve(PLATFORM, shape, probe="/readyz", **UNLIMITED))
            for shape in CANDIDATES
        ]
        # Create their databases before the measurement.
        run(served[0].port, statement, connections=1, seconds=5)
        for name, payloads in (("whoami", whoami), ("sql", statement)):
            targets = [Target(one, payloads) for one in served]
            for target in targets:
                run(target.served.port, payloads, connections=CONNECTIONS, seconds=0.7)
            rows = [
                [measured(target, CONNECTIONS, seconds) for target in targets]
                for _ in range(rounds)
            ]
            for index, shape in enumerate(CANDIDATES):
                _print_medians(f"{name}: {shape}", [(row[index], row[0]) for row in rows])


def _print_medians(label: str, rows: list[tuple[Round, Round]]) -> None:
    rate = statistics.median(one.per_second / first.per_second for (one, _), (first, _) in rows)
    tail = statistics.median(one.p95_ms / first.p95_ms for (one, _), (first, _) in rows)
    processor = statistics.median(one / first for (_, one), (_, first) in rows)
    # Refusals under load count against a candidate.
    failures = sum(one.failures for (one, _), _ in rows)
    figures = f"throughput {rate:.2f}, p95 {tail:.2f}, processor time {processor:.2f}"
    print(f"{label}: {figures} (first = 1), {failures} refused", flush=True)
