"""One trace over the platform, the brain and a worker, each in a process of its own."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from pytest_django import Settings

from common import tracing
from edgecache.api import client
from tests.collector import Collector, traced
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

STRANGER = "0123456789abcdef0123456789abcdef"


def read_until_a_worker_serves(cluster: Cluster, seen: Collector) -> None:
    """Read objects, each for the first time, until the brain asks a worker for one."""
    s3 = connect(cluster.tenant(), cluster.url)
    s3.meta.events.register(
        "before-send.s3.GetObject",
        lambda request, **_: request.headers.update(
            traceparent=f"00-{STRANGER}-0123456789abcdef-01"
        ),
    )
    s3.create_bucket(Bucket="docs")
    numbers = itertools.count()

    def read() -> bool:
        key = f"marmalade-{next(numbers)}"
        s3.put_object(Bucket="docs", Key=key, Body=b"lemonade" * 1000)
        wait_until(lambda: seen.named("object PutObject"))
        for _ in range(3):
            s3.get_object(Bucket="docs", Key=key)["Body"].read()
        return bool(seen.named("worker GET"))

    try:
        wait_until(read)
    finally:
        s3.close()


def test_a_trace_goes_on_in_brain_and_worker(
    start: Callable[..., Cluster], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with traced() as seen:
        monkeypatch.setenv("ZTRACES_URL", seen.url)
        monkeypatch.setenv("ZTRACES_SHARE", "1")
        cluster = start(workers=1)
        settings.CACHE = replace(
            settings.CACHE,
            brain_url=f"http://127.0.0.1:{cluster.internal_port}",
            secret=cluster.secret,
            is_enabled=True,
        )
        client._sessions.clear()
        client.breaker.succeeded()
        with tracing.root("request"):
            client.call("GET", "/v1/nodes")
        ours = seen.child_of(seen.wait_for("request"), "brain call")
        assert seen.service_of(seen.child_of(ours, "brain GET /v1/nodes")) == "zonal-brain"

        read_until_a_worker_serves(cluster, seen)
        served = seen.wait_for("worker GET")
        assert seen.service_of(served) == "zonal-cache-worker"
        asked = seen.parent_of(served)
        request = seen.parent_of(asked)
        assert (asked.name, request.name) == ("worker read", "object GetObject")
        assert served.trace_id == asked.trace_id == request.trace_id
        # A client does not choose its trace, and nothing of it is in one.
        assert request.trace_id.hex() != STRANGER
        cluster.stop()
    for secret in (b"marmalade", b"lemonade", cluster.secret.encode()):
        assert secret not in seen.raw
