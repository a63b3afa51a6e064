"""Interim responses of origins, such as 103 Early Hints, on their way to the client."""

from collections.abc import Sequence

from edgecache.brain.cdn.urls import CacheUrl
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.origins.driver import TakeInterim
from edgecache.http.exchange import Exchange


def handed_on(cache_url: CacheUrl, exchange: Exchange) -> TakeInterim:
    """Return what sends them to the client, with the headers that a response may have."""

    def take(status: int, fields: Sequence[tuple[str, str]]) -> None:
        headers = cache_url.for_client(list(caching_rules.end_to_end(fields)))
        exchange.response_interim(status, headers)

    return take
