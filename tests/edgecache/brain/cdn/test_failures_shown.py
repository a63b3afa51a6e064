"""The owner of a bucket sees why its responses failed, whichever brain and way they came by."""

from typing import Any

from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.cdn.test_causes import bucket_at
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster
from tests.ports import free_port


def failures(cluster: Cluster, scope: str, name: str = "cdn-bucket") -> dict[str, Any]:
    """Return how often each cause was counted."""
    rows = cluster.call("GET", f"/v1/buckets/{name}/failures?{scope}")["failures"]
    return {row["cause"]: row["count"] for row in rows}


def test_causes_are_counted_for_the_bucket(cluster: Cluster) -> None:
    bucket = bucket_at(cluster, f"http://127.0.0.1:{free_port()}/")
    for _ in range(3):
        bucket.get("/a")
    bucket.get("/a", cdn_loop="zonal")
    bucket.get("/a", cache_control="only-if-cached")
    wanted = {"connection-refused": 3, "loop": 1}
    until(lambda: failures(cluster, bucket.scope) == wanted)


def test_reads_by_s3_count_as_well(cluster: Cluster) -> None:
    keys = cluster.tenant()
    config = {"bucket": "away", "region": "x", "endpoint": f"http://127.0.0.1:{free_port()}"}
    origin = {"name": "away", "kind": "s3", "config": config}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", origin)
    bucket = {"name": "pulled", "origin_id": made["id"]}
    cluster.call("POST", f"/v1/buckets?{keys.scope}", bucket)
    signer = Signer(keys, cluster.url)
    assert send(cluster.url, "GET", "/pulled/a", signer.sign("GET", "/pulled/a")).status >= 500
    until(lambda: failures(cluster, keys.scope, "pulled") == {"connection-refused": 1})


def test_they_are_the_owner_s_and_end_with_the_bucket(cluster: Cluster) -> None:
    bucket = bucket_at(cluster, f"http://127.0.0.1:{free_port()}/")
    bucket.get("/a")
    until(lambda: bool(failures(cluster, bucket.scope)))
    other = cluster.tenant()
    cluster.call("POST", f"/v1/buckets?{other.scope}", {"name": "cdn-bucket"})
    assert failures(cluster, other.scope) == {}
    cluster.call("DELETE", f"/v1/buckets/{bucket.bucket_id}?{bucket.scope}")
    again = {"name": "cdn-bucket", "is_public": True}
    cluster.call("POST", f"/v1/buckets?{bucket.scope}", again)
    assert failures(cluster, bucket.scope) == {}
