"""A brain behind a proxy knows its clients' addresses, and whether they use TLS."""

import pytest

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster
from tests.edgecache.new_cluster import new_cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

HEADERS = {"x-forwarded-for": "192.0.2.1, 203.0.113.7"}


def logged(cluster: Cluster) -> str:
    """Return the client's address as the brain logs it."""
    answer = send(cluster.url, "GET", "/docs/k", HEADERS)
    assert answer.status in {403, 404}
    request_id = answer.headers["x-amz-request-id"]
    wait_until(lambda: request_id in cluster.log)
    (line,) = (line for line in cluster.log.splitlines() if request_id in line)
    return line.partition('"client":"')[2].partition('"')[0]


def completed(cluster: Cluster, headers: dict[str, str]) -> str:
    """Return the URL that the answer to a completed upload names."""
    signer = Signer(cluster.tenant(), cluster.url)
    assert signer.send("PUT", "/docs").status == 200
    upload = signer.send("POST", "/docs/big?uploads=").text("UploadId")
    etag = signer.send("PUT", f"/docs/big?partNumber=1&uploadId={upload}", b"x").headers["etag"]
    part = f"<Part><PartNumber>1</PartNumber><ETag>{etag.strip(chr(34))}</ETag></Part>"
    body = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode()
    done = signer.send("POST", f"/docs/big?uploadId={upload}", body, headers)
    return done.text("Location")


def test_a_trusted_proxy_s_header_counts(tmp_path_factory: pytest.TempPathFactory) -> None:
    trusted = "127.0.0.0/8"
    with new_cluster(tmp_path_factory, workers=0, ZTRUSTED_PROXIES=trusted) as cluster:
        assert logged(cluster) == "203.0.113.7"
        for said, scheme in (("https", "https"), ("http", "http"), ("javascript", "http")):
            location = completed(cluster, {"x-forwarded-proto": said})
            assert location == f"{scheme}://127.0.0.1:{cluster.port}/docs/big"


def test_the_header_of_another_client_does_not_count(bare_cluster: Cluster) -> None:
    assert logged(bare_cluster) == "127.0.0.1"
    assert completed(bare_cluster, {"x-forwarded-proto": "https"}).startswith("http://")
