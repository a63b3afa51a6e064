"""A crowd of small requests does not delay another organization's until all are answered."""

from collections.abc import Callable

import pytest

from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster
from tests.edgecache.crowds import FEW, answered_before

pytestmark = pytest.mark.slow


def tenant_with_object(cluster: Cluster) -> tuple[Signer, str]:
    """Return a new tenant's signer, and the public name of its bucket ``docs``, which has ``k``."""
    keys = cluster.tenant()
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "is_public": True})
    signer = Signer(keys, cluster.url)
    assert signer.send("PUT", "/docs/k", b"x").status == 200
    return signer, str(row["public_name"])


def signed(signer: Signer, _public_name: str) -> bytes:
    """Return a request with a signature in its header."""
    return head("/docs/k", signer.sign("HEAD", "/docs/k"))


def presigned(signer: Signer, _public_name: str) -> bytes:
    """Return a request with a signature in its query."""
    return head(signer.presign("HEAD", "/docs/k"), {"host": signer.url.partition("//")[2]})


def public(_signer: Signer, public_name: str) -> bytes:
    """Return an anonymous request for a public bucket."""
    return head(f"/p/{public_name}/k", {"host": "localhost"})


def head(target: str, headers: dict[str, str]) -> bytes:
    """Return the bytes of a HEAD."""
    fields = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HEAD {target} HTTP/1.1", *fields, "", ""]).encode()


@pytest.mark.parametrize("modest", [signed, presigned, public])
def test_a_crowd_of_small_requests_is_not_ahead_of_another_organization(
    bare_cluster: Cluster, modest: Callable[[Signer, str], bytes]
) -> None:
    greedy, other = tenant_with_object(bare_cluster), tenant_with_object(bare_cluster)

    assert answered_before(bare_cluster.port, modest(*other), crowd=signed(*greedy)) < FEW


def test_a_crowd_that_claims_anothers_key_is_not_ahead_of_its_owner(bare_cluster: Cluster) -> None:
    owner = tenant_with_object(bare_cluster)
    request = signed(*owner)
    forged = request.replace(b"Signature=", b"Signature=0")

    # From another network: a /32 of IPv4.
    assert answered_before(bare_cluster.port, request, crowd=forged, source="127.0.0.2") < FEW
