"""``/-/readyz`` at the object API: whether a balancer should send requests here."""

import http.client
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from platform_site import settings as platform_settings
from tests.edgecache.brain.support import CUT, ClusterRows
from tests.edgecache.cluster import Cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PATH = "/-/readyz"


def ask(brain: Cluster, *, method: str = "GET", host: str = "") -> tuple[int, bytes]:
    """Return the status and the body."""
    with closing(http.client.HTTPConnection("127.0.0.1", brain.port, timeout=20)) as client:
        client.request(method, PATH, headers={"Host": host} if host else {})
        answer = client.getresponse()
        return answer.status, answer.read()


def missing(brain: Cluster) -> str:
    """Return what it says is missing, "" for nothing."""
    status, body = ask(brain)
    said = json.loads(body)
    assert status == (503 if said["status"] == "unavailable" else 200)
    return str(said.get("missing", ""))


@contextmanager
def database_lost(url: str) -> Iterator[None]:
    """Refuse connections to a database, and cut those that there are."""
    rows, name = ClusterRows(platform_settings.DATABASE_URL), urlsplit(url).path[1:]
    rows.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    try:
        rows.run(CUT, name)
        yield
    finally:
        rows.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def test_a_balancer_is_answered_without_a_signature_whatever_host_it_names(
    start: Callable[..., Cluster],
) -> None:
    brain = start(workers=0, variables={"ZBRAIN_S3_DOMAINS": "objects.test"})
    for host in ("", "objects.test", "10.0.0.7:9000"):
        assert ask(brain, host=host) == (200, b'{"status":"ok"}')
    assert ask(brain, method="HEAD") == (200, b"")
    # No request of a tenant: not in the log of requests, and no operation of S3.
    assert "object_request" not in brain.log
    assert ask(brain, method="PUT")[0] == 403
    # At a tenant's host the path is a key.
    status, body = ask(brain, host="bucket.objects.test")
    assert status == 403
    assert b"AccessDenied" in body


def test_a_lost_database_is_said_immediately_and_requests_wait_no_longer(
    start: Callable[..., Cluster], database_url: str
) -> None:
    brain = start(workers=0)
    assert missing(brain) == ""
    with database_lost(database_url):
        wait_until(lambda: missing(brain) == "database")
        began = time.monotonic()
        for _ in range(5):
            assert missing(brain) == "database"
        # Whether a bucket has this name is not known: none can be served.
        status, body = ask(brain, host="balancer.example.com")
        assert (status, json.loads(body)["missing"]) == (503, "database")
        # Known by now: the first request that found it out waited for a connection.
        tenant = ("GET", "/bucket?list-type=2")
        for _ in range(5):
            with closing(http.client.HTTPConnection("127.0.0.1", brain.port)) as client:
                claim = "AWS4-HMAC-SHA256 Credential=AKIAUNKNOWN/20261128/us-east-1/s3/aws4_request"
                client.request(*tenant, headers={"Authorization": claim})
                client.getresponse().read()
        assert time.monotonic() - began < 4
    wait_until(lambda: missing(brain) == "")
    assert ask(brain, host="balancer.example.com") == (200, b'{"status":"ok"}')


def test_a_lost_store_is_said(start: Callable[..., Cluster], tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    brain = start(workers=0, variables={"ZBRAIN_STORE_URL": f"file://{mount}"})
    assert missing(brain) == ""
    shutil.rmtree(mount)
    wait_until(lambda: missing(brain) == "store")
    # Of the internal port as well.
    with closing(http.client.HTTPConnection("127.0.0.1", brain.internal_port)) as client:
        client.request("GET", "/health")
        assert client.getresponse().status == 503
    mount.mkdir()
    wait_until(lambda: missing(brain) == "")
