"""Traces of requests: off, sampled, and never steered by a client."""

import subprocess
import sys

import pytest
from django.test import Client

from common import tracing
from tests.collector import collecting, traced

pytestmark = pytest.mark.slow

OURS = "0123456789abcdef0123456789abcdef"
TRACEPARENT = f"00-{OURS}-0123456789abcdef-01"
OFF = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
import django
django.setup()
import platform_site.wsgi, edgecache.brain.app, edgecache.worker.process
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_nothing_of_opentelemetry_is_loaded_while_traces_are_off() -> None:
    seen = subprocess.run([sys.executable, "-c", OFF], capture_output=True, text=True, check=True)
    assert seen.stdout.splitlines()[-1] == "[]"


def test_without_a_collector_there_are_no_spans() -> None:
    tracing.start("zonal-web", "", 1.0)
    with tracing.root("request") as span:
        assert span is None
        assert tracing.headers() == {}


def test_a_request_is_a_span_of_its_route_and_a_client_does_not_choose_its_trace() -> None:
    with traced() as seen:
        answer = Client().get("/healthz?token=marmalade", headers={"traceparent": TRACEPARENT})
        span = seen.wait_for("GET healthz")
        assert seen.service_of(span) == "zonal-web"
        found = {each.key: each.value for each in span.attributes}
        assert found["http.response.status_code"].int_value == 200
        assert found["zonal.request_id"].string_value == answer["X-Request-Id"]
        assert not span.parent_span_id
        assert span.trace_id.hex() != OURS
    assert b"marmalade" not in seen.raw


def test_the_share_of_traced_requests_is_set() -> None:
    with collecting() as seen:
        tracing.start("zonal-web", seen.url, 0.0)
        Client().get("/healthz")
        tracing.stop()
        assert seen.spans == []


def test_what_is_not_traced_where_it_began_is_not_traced_elsewhere() -> None:
    with collecting() as seen:
        tracing.start("zonal-web", seen.url, 0.0)
        with tracing.root("request") as request, tracing.span("SQL") as part:
            assert (request, part) == (None, None)
            assert tracing.headers() == {}
        for refused in (f"{TRACEPARENT[:-1]}0", "nonsense"):
            with tracing.continued("brain call", refused) as span:
                assert span is None
        tracing.stop()
        assert seen.spans == []


def test_an_error_leaves_its_kind_and_not_its_text() -> None:
    with traced() as seen:
        with pytest.raises(ValueError, match="marmalade"), tracing.root("request"):
            raise ValueError("marmalade")
        span = seen.wait_for("request")
        assert [each.value.string_value for each in span.attributes] == ["ValueError"]
        assert not span.events
    assert b"marmalade" not in seen.raw


def test_a_collector_that_is_away_costs_no_request_its_answer() -> None:
    tracing.start("zonal-web", "http://127.0.0.1:1", 1.0)
    try:
        assert Client().get("/healthz").status_code == 200
    finally:
        tracing.stop()
