"""An organization's buckets, objects, access keys and nodes are deleted with it, no others."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from common.principals import Scope
from edgecache.api import access_keys, buckets, client, nodes
from environments import environments
from environments.models import Organization
from tests.cast import signed_in
from tests.edgecache.cluster import Cluster
from tests.organizations.support import is_deleted

pytestmark = pytest.mark.django_db(transaction=True)
NODE = {"region": "eu-central", "capacity_bytes": 2**30}


@pytest.fixture(autouse=True)
def over_a_brain(cluster: Cluster, settings: Settings) -> Iterator[None]:
    """Connect the platform to the brain."""
    settings.CACHE = replace(
        settings.CACHE,
        brain_url=f"http://127.0.0.1:{cluster.internal_port}",
        s3_url=cluster.url,
        secret=cluster.secret,
        is_enabled=True,
    )
    yield
    client._sessions.clear()


def equipped(user: User) -> Scope:
    """Give the user's organization a bucket, a key and a node."""
    place = Scope(user.organization_id, environments.find(user.organization_id, "live").pk)
    buckets.create(place, {"name": "media", "is_public": True})
    caller = signed_in(user)
    assert caller.post("/v1/cache/access-keys", {"access": "write"}).status == 201
    node = {**NODE, "endpoint": f"http://node-{user.organization_id}.example.com"}
    assert caller.post("/v1/cache/nodes/register", node).status == 201
    return place


def held(place: Scope) -> tuple[int, int, int]:
    """Return how many buckets, access keys and nodes an organization has."""
    own = [each for each in nodes.all_seen_by(place.organization_id) if each["is_own"]]
    return len(buckets.all_of(place)), len(access_keys.all_of(place)), len(own)


def test_the_cache_forgets_the_organization(alice: User, charlie: User) -> None:
    hers, his = equipped(alice), equipped(charlie)
    name = str(Organization.objects.get(pk=alice.organization_id).name)
    assert signed_in(alice).post("/v1/organization/deletion", {"name": name}).status == 201
    assert is_deleted(alice.organization_id, at=timezone.now() + timedelta(days=8))
    assert held(hers) == (0, 0, 0)
    assert held(his) == (1, 1, 1)
