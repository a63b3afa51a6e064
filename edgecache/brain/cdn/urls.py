"""URLs of the cache: what a client requests, and how an origin's URLs read for that client."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from urllib.parse import quote

from edgecache.brain.cdn import browser_urls
from edgecache.brain.cdn.browser_urls import BrowserUrl
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.http_caching import cache_tags, caching_rules
from edgecache.brain.http_caching.cache_keys import SAFE, KeyPolicy, Target
from edgecache.brain.http_caching.caching_rules import COOKIES, Pairs
from edgecache.brain.origins.driver import TakeInterim, ranged_of
from edgecache.brain.origins.http import HttpDriver
from edgecache.http.headers import lossless

LOCATIONS: Final = frozenset({"location", "content-location"})
# HTML §"Shared declarative refresh steps": a time, then a URL, which may be quoted.
REFRESH: Final = re.compile(
    r"([ \t\f]*[0-9.]+(?:[ \t\f]+[;,]?|[;,])[ \t\f]*(?:url[ \t\f]*=[ \t\f]*)?)"
    r"(['\"]?)(.+)",
    re.IGNORECASE,
)
# A quoted string, or a link's target (RFC 8288 §3).
LINK: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|<([^>]*)>")
# Stands for the client's host, which is no origin's.
CACHE_HOST: Final = "cache.invalid"
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

    driver: of an origin that speaks plain HTTP; None for one of objects. expires_at: of the signed
    link that opens it, in Unix seconds; None without one.
    """

    bucket: BucketInfo
    target: Target
    prefix: str
    driver: HttpDriver | None
    expires_at: int | None = None

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

    @property
    def folder(self) -> str:
        """Return where a client finds the folder that the key names, '' if a browser does not."""
        path = f"{self.prefix}{quote(self.target.key, safe=SAFE)}/"
        here = BrowserUrl("https", "", CACHE_HOST, None, "/")
        wanted = here._replace(path=path, query=self.target.query or None)
        text = _rooted(wanted)
        return text if _leads(text, here, wanted) else ""

    def for_client(self, headers: Pairs) -> list[tuple[str, str]]:
        """Return an origin's headers for the client: its URLs become URLs of the cache.

        Their text is encoded to the origin's bytes (``lossless``).
        """
        refused = cache_tags.HEADERS | (HOST_WIDE if self.is_shared else frozenset())
        return [
            (name, lossless(self._rewritten(name, value)))
            for name, value in headers
            # The stored response may be older than their removal on arrival.
            if name not in refused and not name.startswith(caching_rules.NGINX)
        ]

    def _rewritten(self, name: str, value: str) -> str:
        if name in LOCATIONS:
            return self._located(value)
        if name == "refresh" and (found := REFRESH.match(value)):
            time, quote_mark, url = found.groups()
            url = url.partition(quote_mark)[0] if quote_mark else url
            located = self._located(url)
            return value if located == url else f"{time}{quote_mark}{located}{quote_mark}"
        if name == "link":
            return LINK.sub(
                lambda found: found[0] if found[1] is None else f"<{self._located(found[1])}>",
                value,
            )
        return value

    def _located(self, reference: str) -> str:
        """Return a reference of the origin as the client must have it to go where it was meant.

        What a browser makes of the result is compared with that, so that it leads to no other host.
        """
        if self.driver is None:
            return reference
        # As the origin was asked, and where it is.
        at_origin = browser_urls.parse(self.driver.named(self.url))
        at_address = browser_urls.parse(self.url)
        meant = None if at_origin is None else at_origin.join(reference)
        if at_origin is None or at_address is None or meant is None:
            return reference
        here = at_origin._replace(host=CACHE_HOST, port=None, path=self.prefix + self.target.path)
        path = None
        if _is_home(meant, at_origin) or _is_home(meant, at_address):
            path = self.driver.path_of(meant.path)
        if path is None:
            return reference if _leads(reference, here, meant) else str(meant)
        wanted = meant._replace(host=CACHE_HOST, port=None, path=self.prefix + path)
        if _leads(reference, here, wanted):
            return reference
        text = _rooted(wanted)
        return text if _leads(text, here, wanted) else str(meant)


class Page(Enum):
    """An answer of a website: the object that the URL names, or what stands for it."""

    OBJECT = auto()
    FOLDER = auto()
    FALLBACK = auto()
    ERROR = auto()


@dataclass(frozen=True, slots=True)
class CdnRequest:
    """A client's request. fields: its headers, lower-case names. client: its address.

    is_head: only the head of the response is wanted. wants_whole: also for a range of it.
    take_interim: hands the origin's interim responses on to the client.
    page: which answer of a website it is; None if it is not for a website.
    """

    cache_url: CacheUrl
    fields: Mapping[str, str]
    policy: KeyPolicy
    only_if_cached: bool = False
    client: str = ""
    is_head: bool = False
    wants_whole: bool = False
    take_interim: TakeInterim | None = None
    page: Page | None = None

    @property
    def ranged(self) -> tuple[tuple[str, str], ...]:
        """Return the fields that ask the origin for a part, if the client wants no more."""
        if self.is_head or self.wants_whole:
            return ()
        return ranged_of(self.fields.get("range", ""), self.fields.get("if-range", ""))

    @property
    def method(self) -> str:
        """Return the method by which the origin is asked."""
        return "HEAD" if self.is_head else "GET"

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


def _rooted(wanted: BrowserUrl) -> str:
    """Return a URL of the same host as a reference to it."""
    # Behind two slashes at its beginning browsers expect a host.
    return f"/.{wanted.target}" if wanted.path.startswith("//") else wanted.target


def _is_home(meant: BrowserUrl, page: BrowserUrl) -> bool:
    """True if a URL is at the origin that sent a page, over http or https.

    False for the page itself with the other scheme: from the cache it would lead to itself.
    """
    if (meant.user, meant.host, meant.port) != ("", page.host, page.port):
        return False
    return meant.scheme == page.scheme or (meant.path, meant.query) != (page.path, page.query)


def _leads(reference: str, here: BrowserUrl, wanted: BrowserUrl) -> bool:
    """True if a browser goes from a page of the cache to a URL, by http and by https."""
    for scheme in browser_urls.PORTS:
        goal = wanted._replace(scheme=scheme) if wanted.host == CACHE_HOST else wanted
        if here._replace(scheme=scheme).join(reference) != goal:
            return False
    return True
