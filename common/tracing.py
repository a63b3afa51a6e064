"""OpenTelemetry traces of requests across processes, disabled by default.

If ZTRACES_URL is unset, OpenTelemetry is not imported, and a span costs one comparison. The process
where a request begins decides if it is traced; untraced requests create no spans anywhere. Spans
contain names, statuses and numbers; never SQL, values, keys, bodies or error texts.
"""

import importlib.util
import random
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from opentelemetry.trace import Span

TRACES_PATH: Final = "/v1/traces"
TRACEPARENT: Final = "traceparent"
FLUSH_S: Final = 1.0

Kind = Literal["internal", "server", "client"]
Attributes = Mapping[str, str | int]

_OFF: Final[AbstractContextManager[None]] = nullcontext()
_NONE: Final[Mapping[str, str]] = {}


class _State:
    """The state set by ``start``; None without traces. share: of the requests that begin here.

    current_span: the library's function, called for each span of every request.
    """

    provider: Any = None
    tracer: Any = None
    current_span: Any = None
    share: float = 0.0


def is_installed() -> bool:
    """True if the packages of the extra `traces` are installed."""
    return importlib.util.find_spec("opentelemetry") is not None and all(
        importlib.util.find_spec(name) is not None
        for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    )


def start(service: str, url: str, share: float) -> None:
    """Send this process's spans to a collector, unless url is "".

    url: of the collector's OTLP over HTTP, without the path. share: of the requests that begin
    here; requests of other processes are traced if they were traced there. Call it after a fork: it
    starts a thread.
    """
    if not url or not is_installed():
        return
    import requests  # noqa: PLC0415 - only where traces are on, as the rest
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - as above
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON  # noqa: PLC0415 - as above
    from opentelemetry.trace import get_current_span  # noqa: PLC0415 - as above

    session = requests.Session()
    session.trust_env = False
    provider = TracerProvider(
        # ``root`` samples, because the library would create a span before dropping it.
        sampler=ALWAYS_ON,
        resource=Resource({"service.name": service}),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint=url.rstrip("/") + TRACES_PATH, session=session)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=FLUSH_S * 1000))
    _State.provider, _State.share = provider, share
    _State.current_span = get_current_span
    _State.tracer = provider.get_tracer("zonal")


def stop() -> None:
    """Send the remaining spans, and end the thread."""
    provider, _State.provider, _State.tracer = _State.provider, None, None
    if provider is not None:
        provider.shutdown()


def span(
    name: str, kind: Kind = "internal", attributes: Attributes = _NONE
) -> "AbstractContextManager[Span | None]":
    """Create a span around the block if the request is traced; yield None otherwise."""
    if not _is_traced():
        return _OFF
    return _open(name, kind, None, attributes)


def root(name: str) -> "AbstractContextManager[Span | None]":
    """Create the span of a request from outside, whose own `traceparent` is ignored.

    Otherwise a client could have all of its requests traced, or add spans to another trace. Yields
    None for requests that are not sampled.
    """
    if _State.tracer is None or random.random() >= _State.share:  # noqa: S311 - a sample, no secret
        return _OFF
    from opentelemetry.context import Context  # noqa: PLC0415 - only where traces are on

    return _open(name, "server", Context(), _NONE)


def continued(name: str, traceparent: str) -> "AbstractContextManager[Span | None]":
    """Create the span of another process's request in its trace; None if it is not traced."""
    if _State.tracer is None:
        return _OFF
    from opentelemetry.context import Context  # noqa: PLC0415 - only where traces are on
    from opentelemetry.trace import get_current_span  # noqa: PLC0415 - as above
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - as above
        TraceContextTextMapPropagator,
    )

    parent = TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent}, Context())
    if not get_current_span(parent).get_span_context().trace_flags.sampled:
        return _OFF
    return _open(name, "server", parent, _NONE)


def headers() -> Mapping[str, str]:
    """Return the headers with which the next process continues the trace."""
    if not _is_traced():
        return _NONE
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - as above
        TraceContextTextMapPropagator,
    )

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier


def _is_traced() -> bool:
    return _State.tracer is not None and _State.current_span().is_recording()


@contextmanager
def _open(name: str, kind: Kind, parent: Any, attributes: Attributes) -> "Iterator[Span]":
    from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415 - only where traces are on

    with _State.tracer.start_as_current_span(
        name,
        context=parent,
        kind=SpanKind[kind.upper()],
        attributes=attributes,
        # The text of an error may contain a tenant's values.
        record_exception=False,
        set_status_on_exception=False,
    ) as opened:
        try:
            yield opened
        except Exception as error:
            opened.set_attribute("error.type", type(error).__name__)
            opened.set_status(StatusCode.ERROR)
            raise
