"""What a client asks the CDN for."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgecache.brain.cdn.urls import CacheUrl
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.http_caching.cache_keys import KeyPolicy, Target


@dataclass(frozen=True, slots=True)
class CdnRequest:
    """A client's request. fields: its headers, lower-case names. client: its address."""

    cache_url: CacheUrl
    fields: Mapping[str, str]
    policy: KeyPolicy
    only_if_cached: bool = False
    client: str = ""

    @property
    def bucket(self) -> BucketInfo:
        return self.cache_url.bucket

    @property
    def target(self) -> Target:
        """Return what the URL names."""
        return self.cache_url.target

    @property
    def key(self) -> str:
        return self.cache_url.target.key

    @property
    def is_http(self) -> bool:
        """True if the origin speaks plain HTTP; others have objects, without variants."""
        return self.cache_url.driver is not None
