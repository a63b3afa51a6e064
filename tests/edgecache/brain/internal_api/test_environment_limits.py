"""Limits of an environment: 1,000 buckets, origins and keys, also for concurrent requests."""

import secrets
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.edgecache.brain.support import ClusterRows, Internal
from tests.edgecache.cluster import Cluster

pytestmark = pytest.mark.slow

TABLES = {
    "buckets": "INSERT INTO brain_bucket (organization_id, environment_pk, name, public_name,"
    " is_public, allows_redirect, verifies_reads, forwards_writes) SELECT %s, 11, 'b' || i,"
    " gen_random_uuid()::text::varchar(32), false, false, false, false"
    " FROM generate_series(1, 998) i",
    "origins": "INSERT INTO brain_origin (organization_id, environment_pk, name, kind, config)"
    " SELECT %s, 11, 'o' || i, 'http', '{}' FROM generate_series(1, 998) i",
    "access-keys": "INSERT INTO brain_accesskey (id, organization_id, environment_pk, secret)"
    " SELECT left(gen_random_uuid()::text, 32), %s, 11, 'x' FROM generate_series(1, 998) i",
}
EMPTY = {
    "buckets": "DELETE FROM brain_bucket WHERE organization_id = %s",
    "origins": "DELETE FROM brain_origin WHERE organization_id = %s",
    "access-keys": "DELETE FROM brain_accesskey WHERE organization_id = %s",
}
BODIES: dict[str, dict[str, Any]] = {
    "buckets": {},
    "origins": {"kind": "http", "config": {"url": "https://example.com/"}},
    "access-keys": {"label": "ci"},
}


@pytest.mark.parametrize("resource", TABLES)
def test_concurrent_requests_do_not_pass_the_limit(
    bare_cluster: Cluster, cluster_rows: ClusterRows, resource: str
) -> None:
    call, organization = Internal(bare_cluster), secrets.randbits(40)
    cluster_rows.run(TABLES[resource], organization)

    def create(number: int, environment: int = 11) -> str:
        name = {} if resource == "access-keys" else {"name": f"new-{number}"}
        path = f"/v1/{resource}?organization_id={organization}&environment_pk={environment}"
        said = call("POST", path, BODIES[resource] | name)
        return said.code if said.status != 201 else "created"

    with ThreadPoolExecutor(5) as pool:
        said = Counter(pool.map(create, range(5)))
    assert said == {"created": 2, "cache_limit_reached": 3}
    assert create(9, environment=12) == "created"
    # To delete a thousand buckets as a tenant does takes longer than the test.
    cluster_rows.run(EMPTY[resource], organization)
