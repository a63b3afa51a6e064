"""Plain HTTP clients' requests, handed to the CDN's lookup without a connection."""

from edgecache.brain.cdn.lookup import Lookup
from edgecache.brain.cdn.urls import CacheUrl, CdnRequest
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.http_caching.cache_keys import KeyPolicy, Target
from edgecache.brain.objects.open_object import OpenObject
from edgecache.brain.origins.http import HttpDriver
from tests.edgecache.brain.brains import Brain


async def plain_request(
    brain: Brain, bucket: BucketInfo, key: str, *, client: str = ""
) -> CdnRequest:
    """Return a client's request for a key."""
    driver = await brain.origins.driver(bucket)
    assert isinstance(driver, HttpDriver)
    cache_url = CacheUrl(bucket, Target(key, key, ""), "/", driver)
    return CdnRequest(cache_url, {}, KeyPolicy.of(()), client=client)


def looking_up(brain: Brain) -> Lookup:
    """Return the lookup of a brain's public buckets."""
    return Lookup(brain.objects, brain.directory)


async def opened(looking: Lookup, wanted: CdnRequest) -> OpenObject:
    """Return the response's body."""
    found = (await looking.find(wanted)).opened
    assert found is not None
    return found
