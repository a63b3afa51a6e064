"""A worker's part in traces: a span for each read that the brain traces, if ZTRACES_URL is set.

A span is made after a read was admitted, so that an unauthenticated `traceparent` has no effect.
Without the packages of the extra `traces` a worker serves without traces.
"""

import importlib.util
import logging
import os
import time
from collections.abc import Callable
from typing import Final

from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope

log = logging.getLogger(__name__)

TRACES_PATH: Final = "/v1/traces"
TRACEPARENT: Final = "traceparent"
REFUSED: Final = 400
PACKAGES: Final = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

Finish = Callable[[HttpScope, Exchange, int], None]


class Tracing:
    """Spans of one worker; ``finished`` is None while traces are off."""

    def __init__(self) -> None:
        """Read ZTRACES_URL: the collector's OTLP over HTTP, without the path."""
        self.finished: Finish | None = None
        self.stop: Callable[[], None] = lambda: None
        url = os.environ.get("ZTRACES_URL", "")
        if not url:
            return
        for name in PACKAGES:
            if importlib.util.find_spec(name) is None:
                log.warning("traces_not_installed", extra={"missing": name})
                return
        self._start(url)

    def _start(self, url: str) -> None:
        import requests  # noqa: PLC0415 - only where traces are on, as the rest
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - as above
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased  # noqa: PLC0415 - as above
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - as above
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - as above
            TraceContextTextMapPropagator,
        )

        session = requests.Session()
        session.trust_env = False
        provider = TracerProvider(
            sampler=ParentBased(ALWAYS_OFF),
            resource=Resource({"service.name": "zonal-cache-worker"}),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(endpoint=url.rstrip("/") + TRACES_PATH, session=session)
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        tracer, propagator = provider.get_tracer("zonal"), TraceContextTextMapPropagator()

        def finished(scope: HttpScope, exchange: Exchange, began_ns: int) -> None:
            given = scope.headers.get(TRACEPARENT)
            if given and exchange.is_answered and exchange.status < REFUSED:
                span = tracer.start_span(
                    f"worker {scope.method}",
                    context=propagator.extract({TRACEPARENT: given}),
                    kind=SpanKind.SERVER,
                    start_time=began_ns,
                )
                span.set_attribute("http.response.status_code", exchange.status)
                span.end(time.time_ns())

        self.finished, self.stop = finished, provider.shutdown
