"""Whether an origin's response may be stored, and for whom."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgecache.brain.http_caching import caching_rules
from edgecache.brain.origins.driver import OriginResponse


@dataclass(frozen=True, slots=True)
class Cacheability:
    """The caching decision for one response.

    is_stored: the directory may keep it, under this variant.
    is_shared: other requests that wait for the same fetch may get it.
    http: what RFC 9111 needs to know about it later.
    """

    is_stored: bool = True
    is_shared: bool = True
    variant: str = ""
    http: Mapping[str, Any] = field(default_factory=dict)


def object_cacheability(response: OriginResponse) -> Cacheability:
    """Return the decision for an S3 read, which forwards no request headers to the origin.

    The caching headers of an HTTP origin are kept with the object, for the CDN to use.
    """
    if not response.raw:
        return Cacheability()
    now = time.time()
    kept = caching_rules.judge(response.raw, asked_at=now, answered_at=now)
    if kept is None:
        return Cacheability(is_stored=False, is_shared=False)
    return Cacheability(is_shared=not kept.vary, http=kept.as_json())
