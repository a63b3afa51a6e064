"""Virtual-host style: the host names the bucket, and the whole path is a key."""

from typing import Any

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys


def test_a_key_below_p_is_a_key(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    signer = Signer(keys, cluster.url.replace("127.0.0.1", f"{bucket}.localhost"))
    headers = signer.sign("PUT", "/p/photo", payload="UNSIGNED-PAYLOAD")
    assert send(cluster.url, "PUT", "/p/photo", headers, b"mine").status == 200
    assert s3.get_object(Bucket=bucket, Key="p/photo")["Body"].read() == b"mine"
    assert send(cluster.url, "GET", "/p/photo", signer.sign("GET", "/p/photo")).body == b"mine"


def test_no_other_bucket_is_served_at_a_bucket_s_host(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    # A browser lets the pages of one host read what the others have stored there.
    s3.put_object(Bucket=bucket, Key="page", Body=b"<script>", ContentType="text/html")
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": True})
    path = f"/p/{row['public_name']}/page"
    assert send(cluster.url, "GET", path).body == b"<script>"
    for host in ("other.localhost", "Other.Localhost:9000"):
        answer = send(cluster.url, "GET", path, {"host": host})
        assert (answer.status, answer.code) == (403, "AccessDenied")
