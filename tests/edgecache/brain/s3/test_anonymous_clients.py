"""Anonymous clients: public buckets by their public name, redirects to a worker."""

import hashlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest

from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys

BODY = os.urandom(5000)


class Public:
    """A public bucket with an object."""

    def __init__(self, cluster: Cluster, keys: Keys) -> None:
        self.cluster, self.keys = cluster, keys
        self.row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]

    def switch(self, **switches: bool) -> None:
        """Change it."""
        self.cluster.call("PATCH", f"/v1/buckets/{self.row['id']}?{self.keys.scope}", switches)

    def get(self, key: str, method: str = "GET", **headers: str) -> Answer:
        """Send a request without a signature."""
        return send(self.cluster.url, method, f"/{self.row['public_name']}/{key}", headers)


@pytest.fixture
def public(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> Public:
    """Return a public bucket."""
    s3.put_object(Bucket=bucket, Key="a", Body=BODY, Metadata={"x": "y"})
    found = Public(cluster, keys)
    found.switch(is_public=True)
    return found


def test_anonymous_clients_read_a_public_bucket_by_its_public_name(public: Public) -> None:
    assert public.get("a").body == BODY
    assert public.get("a", range="bytes=0-9").body == BODY[:10]
    assert public.get("a", "HEAD").headers["content-length"] == "5000"
    assert public.get("absent").code == "NoSuchKey"


def test_anonymous_clients_may_only_read_objects(public: Public, cluster: Cluster) -> None:
    for method, target in (
        ("GET", ""),
        ("GET", "?list-type=2"),
        ("GET", "a?attributes="),
        ("PUT", "b"),
        ("DELETE", "a"),
        ("POST", "b?uploads="),
        ("POST", "?delete="),
    ):
        assert public.get(target, method).status == 403, (method, target)
    assert public.get("a?response-content-type=text%2Fhtml").code == "InvalidRequest"
    # Its own name does not say which tenant's bucket is meant.
    assert send(cluster.url, "GET", "/docs/a").code == "AccessDenied"
    public.switch(is_public=False)
    assert public.get("a").code == "AccessDenied"


def located(location: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Follow a redirect."""
    request = urllib.request.Request(location, headers=dict(headers or {}))  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
        return Answer(answer.status, dict(answer.headers), answer.read())


def redirected(public: Public, **headers: str) -> Answer:
    """Repeat a request until a worker holds the object."""
    end = time.monotonic() + 60
    while (answer := public.get("a", **headers)).status != 307:
        assert answer.status in {200, 206}
        assert time.monotonic() < end, "never redirected"
        time.sleep(0.02)
    return answer


def test_a_redirect_is_opt_in_and_leads_to_the_bytes(
    public: Public, keys: Keys, cluster: Cluster
) -> None:
    signer = Signer(keys, cluster.url)
    assert public.get("a").status == 200
    public.switch(allows_redirect=True)
    answer = redirected(public)
    assert answer.headers["cache-control"] == "no-store"
    assert located(answer.headers["location"]).body == BODY
    part = redirected(public, range="bytes=100-199")
    got = located(part.headers["location"], {"range": "bytes=100-199"})
    assert (got.status, got.body) == (206, BODY[100:200])
    # The ticket is for these bytes alone.
    with pytest.raises(urllib.error.HTTPError) as refused:
        located(part.headers["location"])
    with refused.value:
        assert refused.value.code == 403
    # SDKs do not follow it: never for a request that is signed in its header.
    assert signer.send("GET", "/docs/a").body == BODY
    assert send(cluster.url, "GET", signer.presign("GET", "/docs/a")).status == 307
    assert signer.send("GET", "/docs/a", headers={"x-zonal-redirect": "1"}).status == 307
    public.switch(allows_redirect=False, verifies_reads=True)
    for headers in ({}, {"x-zonal-redirect": "1"}):
        assert signer.send("GET", "/docs/a", headers=headers).status == 200


def test_served_bytes_are_counted(public: Public, cluster: Cluster, keys: Keys) -> None:
    before = cluster.call("GET", "/v1/metrics")
    for _ in range(5):
        assert hashlib.sha256(public.get("a").body).digest() == hashlib.sha256(BODY).digest()
    after = cluster.call("GET", "/v1/metrics")
    assert after["total_hits"] - before["total_hits"] == 5
    assert after["bytes_served"] - before["bytes_served"] == 5 * len(BODY)
