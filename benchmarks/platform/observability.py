"""The cost of metrics and traces for a web process: alternating rounds with and without them.

One server serves all rounds, because two servers differ more than metrics cost; signals to its
processes switch metrics and traces. Traces are sent to a collector that discards them. Gunicorn
loads this module as the application.
"""

import os
import signal
import statistics
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from benchmarks.compare import Target, measured
from benchmarks.load import request, run
from benchmarks.prepare import tokens
from benchmarks.servers import Shape, serve
from benchmarks.sql.request_cost import STATEMENT

# With more connections the processor time varies more than the difference that is measured.
CONNECTIONS: Final = 1
TENANTS: Final = 1
OFF: Final = "nothing"
# Whether there are metrics, and the share of requests with traces; ZTRACES_SHARE is 1 %.
SHARES: Final[Mapping[str, float]] = {
    OFF: 0.0,
    "metrics": 0.0,
    "metrics, traces of 1 %": 0.01,
    "metrics, traces of all": 1.0,
}
SIGNALS: Final = {signal.SIGRTMIN + 1 + place: name for place, name in enumerate(SHARES)}


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print how much metrics and traces add to the processor time of a request."""
    callers = tokens(TENANTS)
    with (
        _collector() as url,
        serve(
            "benchmarks.platform.observability",
            Shape(workers=1),
            probe="/readyz",
            ZTRACES_URL=url,
        ) as server,
    ):
        for name, payloads in (
            ("whoami", [request("GET", "/v1/whoami", token=token) for token in callers]),
            ("SELECT 1", [request("POST", "/v1/sql", STATEMENT, token) for token in callers]),
        ):
            target = Target(server, payloads)
            run(server.port, payloads, connections=1, seconds=5)
            _compare(name, target, rounds=rounds, seconds=seconds)


def _compare(name: str, target: Target, *, rounds: int, seconds: float) -> None:
    costs: dict[str, list[float]] = {observed: [] for observed in SHARES}
    names = list(SHARES)
    for number in range(rounds):
        # The order changes from round to round.
        for observed in names[number % len(names) :] + names[: number % len(names)]:
            _switch(target.served.pid, observed)
            costs[observed].append(measured(target, CONNECTIONS, seconds)[1])
    for observed in names[1:]:
        shares = [its / bare - 1 for its, bare in zip(costs[observed], costs[OFF], strict=True)]
        print(f"{name}, {observed}: {_spread(shares)} processor time", flush=True)


def _spread(shares: Sequence[float]) -> str:
    low, _, high = statistics.quantiles(shares, n=4)
    return f"{statistics.median(shares):+.1%} (half of the rounds {low:+.1%} to {high:+.1%})"


def _switch(pid: int, observed: str) -> None:
    """Switch metrics and traces of the server's processes; gunicorn's own process has none."""
    number = next(number for number, name in SIGNALS.items() if name == observed)
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        os.kill(int(child), number)


class _Discard(BaseHTTPRequestHandler):
    """A collector that discards what it receives."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_line: object) -> None:
        """Log nothing."""


@contextmanager
def _collector() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Discard)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def _switchable() -> Any:
    """Return the platform's application; signals switch metrics and traces of its process."""
    from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 - of the server alone

    from common import tracing  # noqa: PLC0415 - as above
    from common.metrics.publishing import ObservationBatch  # noqa: PLC0415 - as above
    from platform_site.wsgi import application  # noqa: PLC0415 - as above

    watched = [(Counter, "inc"), (Gauge, "set"), (Histogram, "observe"), (ObservationBatch, "add")]
    methods = [(kind, name, getattr(kind, name)) for kind, name in watched]
    kept: list[Any] = []

    def switch(number: int, _frame: object) -> None:
        observed = SIGNALS[number]
        for kind, name, method in methods:
            setattr(kind, name, _nothing if observed == OFF else method)
        state = tracing._State  # noqa: SLF001 - no setting switches a running process
        kept[:] = kept or [state.tracer]
        state.share = SHARES[observed]
        state.tracer = kept[0] if state.share else None

    for number in SIGNALS:
        signal.signal(number, switch)
    return application


def _nothing(*_arguments: object, **_fields: object) -> None:
    return None


def __getattr__(name: str) -> Any:
    # Only in gunicorn: the program that measures does not load Django's application.
    if name == "application":
        return _switchable()
    raise AttributeError(name)
