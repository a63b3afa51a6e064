"""What a request costs beside a bare Django view on the same server, as ratios of throughput."""

import json
import statistics
from collections.abc import Mapping

from benchmarks.load import Load, request, run
from benchmarks.servers import Shape, serve

STATEMENT = json.dumps({"query": "SELECT 1"}).encode()
# Many enough that the two workers share them evenly whoever accepts first.
CONNECTIONS = 24


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Alternate Zonal and the yardstick for some rounds; print medians of the ratios."""
    shape = Shape()
    with (
        serve("platform_site.wsgi", shape, probe="/readyz") as zonal,
        serve("benchmarks.bare", shape, probe="/", BENCH_SESSION=identity["session"]) as bare,
    ):
        token = identity["token"]
        pairs = {
            "GET /v1/whoami / bare view, one indexed query": (
                request("GET", "/v1/whoami", token=token),
                request("GET", "/row"),
            ),
            "POST /v1/sql SELECT 1 / bare view, same statement": (
                request("POST", "/v1/sql", STATEMENT, token),
                request("POST", "/sql", STATEMENT),
            ),
        }
        for name, (ours, theirs) in pairs.items():
            _compare(name, (zonal, ours), (bare, theirs), rounds=rounds, seconds=seconds)


def _compare(
    name: str, ours: tuple[int, bytes], theirs: tuple[int, bytes], *, rounds: int, seconds: float
) -> None:
    throughput: list[float] = []
    latency: list[float] = []
    for port, payload in (ours, theirs):
        run(port, payload, connections=CONNECTIONS, seconds=1)
    for _ in range(rounds):
        a = _round(ours, seconds)
        b = _round(theirs, seconds)
        throughput.append(a.per_second / b.per_second)
        latency.append(a.p50_ms / b.p50_ms)
    low, high = min(throughput), max(throughput)
    print(
        f"{name}: throughput {statistics.median(throughput):.2f} ({low:.2f} to {high:.2f}), "
        f"p50 {statistics.median(latency):.2f} times the yardstick's"
    )


def _round(target: tuple[int, bytes], seconds: float) -> Load:
    load = run(target[0], target[1], connections=CONNECTIONS, seconds=seconds)
    if load.failures:
        raise RuntimeError(f"{load.failures} requests failed")
    return load
