"""A brain behind a proxy knows its clients' addresses."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.edgecache.brain.s3.raw import send
from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import brain_database
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("edges", "client"), [("127.0.0.0/8", "203.0.113.7"), ("10.0.0.0/8", "127.0.0.1")]
)
def test_only_a_trusted_proxy_s_header_counts(tmp_path: Path, edges: str, client: str) -> None:
    keys = Fernet.generate_key().decode()
    with brain_database() as url:
        variables = {"ZTRUSTED_PROXIES": edges}
        cluster = Cluster(tmp_path, url, keys, variables=variables, workers=0)
        try:
            cluster.start()
            headers = {"x-forwarded-for": "192.0.2.1, 203.0.113.7"}
            assert send(cluster.url, "GET", "/docs/k", headers).status in {403, 404}
            wait_until(lambda: f'"client":"{client}"' in cluster.log, timeout_s=30)
        finally:
            cluster.stop()
