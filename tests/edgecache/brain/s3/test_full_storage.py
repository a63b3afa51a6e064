"""A write without room: refused with the full resource, and nothing stored."""

from collections.abc import Callable

import pytest

from edgecache.brain.aws.errors import from_brain_error
from edgecache.brain.core.errors import StorageFull
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster

pytestmark = pytest.mark.slow

LIMIT_MIB = 16


def test_a_body_beyond_the_limit_is_refused_with_the_limit(start: Callable[..., Cluster]) -> None:
    cluster = start(variables={"ZBRAIN_STAGING_MIB": str(LIMIT_MIB)})
    signer = Signer(cluster.tenant(), cluster.url)
    assert signer.send("PUT", "/docs").status == 200
    answer = signer.send("PUT", "/docs/k", bytes(LIMIT_MIB * 2**20 + 1))
    assert (answer.status, answer.code) == (503, "StorageFull")
    assert (answer.text("Limit"), answer.text("LimitBytes")) == ("staging", str(LIMIT_MIB * 2**20))
    assert 0 < int(answer.text("ReceivedBytes")) <= LIMIT_MIB * 2**20 + 1
    assert "ZBRAIN_STAGING_MIB" in answer.text("Message")
    assert answer.headers["retry-after"] == "1"
    assert signer.send("GET", "/docs/k").code == "NoSuchKey"
    assert signer.send("PUT", "/docs/k", b"small").status == 200


def test_a_full_disk_is_said_to_be_the_disk() -> None:
    error = from_brain_error(StorageFull())
    assert (error.status, error.code, error.extra) == (503, "StorageFull", {"Limit": "disk"})
