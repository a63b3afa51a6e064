"""What URLs of the cache name, and what URLs of the origin are for the cache's clients."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from edgecache.brain.cdn import caching_rules
from edgecache.brain.cdn.cache_keys import Target, digest_of
from edgecache.brain.cdn.caching_rules import COOKIES, Pairs
from edgecache.brain.origins.http import SAFE, HttpDriver
from edgecache.brain.values import BucketInfo

LOCATIONS: Final = frozenset({"location", "content-location"})
# At a host that many buckets share, these would change what browsers do with the others.
HOST_WIDE: Final = COOKIES | {
    "alt-svc",
    "clear-site-data",
    "nel",
    "public-key-pins",
    "report-to",
    "service-worker-allowed",
    "strict-transport-security",
}


@dataclass(frozen=True, slots=True)
class CacheUrl:
    """What a URL of the cache names. prefix: of the bucket's paths for this client.

    driver: of an origin that speaks plain HTTP; None for one of objects.
    """

    bucket: BucketInfo
    target: Target
    prefix: str
    driver: HttpDriver | None

    @property
    def url(self) -> str:
        """Return the URL at the origin, '' if the bucket has no HTTP origin. Raises KeyRefused."""
        if self.driver is None:
            return ""
        return self.driver.url(self.target.key, self.target.query, path=self.target.path)

    @property
    def is_shared(self) -> bool:
        """True at a host that other buckets have, too."""
        return self.prefix != "/"

    def for_client(self, headers: Pairs) -> list[tuple[str, str]]:
        """Return an origin's headers for the client: its URLs become URLs of the cache."""
        refused = HOST_WIDE if self.is_shared else frozenset()
        return [
            self._located(pair)
            for pair in headers
            # The stored response may be older than their removal on arrival.
            if pair[0] not in refused and not pair[0].startswith(caching_rules.NGINX)
        ]

    def _located(self, pair: tuple[str, str]) -> tuple[str, str]:
        name, value = pair
        if name not in LOCATIONS or self.driver is None:
            return pair
        # A relative reference means the same at both.
        parts = _split(value)
        if parts is None or not (parts[0] or parts[1] or value.strip().startswith("/")):
            return pair
        url = caching_rules.resolved(self.url, value)
        is_home = caching_rules.site(url) == caching_rules.site(self.url)
        path = self.driver.path_of(urlsplit(url).path) if is_home else None
        if path is None:
            return (name, url or value)
        rest = "".join(mark + text for mark, text in zip("?#", parts[2:], strict=True) if text)
        return (name, self.prefix + path + rest)


def target_of(key: str, path: str, query: str) -> Target:
    """Return the target of a URL. path: how it spells the key."""
    spelling = "" if path == quote(key, safe=SAFE) else digest_of(path)
    return Target(key, path, query, spelling)


def _split(value: str) -> tuple[str, str, str, str] | None:
    """Return scheme, host, query and fragment of a reference, None for an invalid one."""
    try:
        parts = urlsplit(value.strip())
    except ValueError:
        return None
    return parts.scheme, parts.netloc, parts.query, parts.fragment
