"""The first statement of a new environment, with and without a database in stock."""

import json
import statistics
import time
import urllib.request
from collections.abc import Mapping

from benchmarks.prepare import tokens
from benchmarks.servers import PLATFORM, RunningServer, Shape, serve

STATEMENT = json.dumps({"query": "SELECT 1"}).encode()


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the time of the first statement in each of some environments.

    identity, seconds: not used. No task worker runs, so the stock is not refilled.
    """
    from sqlgateway.databases import stock  # noqa: PLC0415 - needs django.setup()

    with serve(PLATFORM, Shape(), probe="/readyz") as zonal:
        # The template is created once for each cluster, so it is not part of the measurement.
        _first(zonal, tokens(1)[0])
        cold = [_first(zonal, token) for token in tokens(rounds)]
        warm = []
        for token in tokens(rounds):
            stock.refill(1)
            warm.append(_first(zonal, token))
    for name, times in (("with a database in stock", warm), ("without", cold)):
        middle, longest = statistics.median(times), max(times)
        print(f"first SQL of an environment, {name}: {middle:.0f} ms, at most {longest:.0f} ms")


def _first(zonal: RunningServer, token: str) -> float:
    call = urllib.request.Request(
        f"http://127.0.0.1:{zonal.port}/v1/sql",
        STATEMENT,
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    started = time.perf_counter()
    with urllib.request.urlopen(call, timeout=30) as answer:  # noqa: S310 - our own server
        answer.read()
    return (time.perf_counter() - started) * 1000
