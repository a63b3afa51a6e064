"""Names of objects as people paste them: ``bucket/key``, or a URL that a browser shows.

A spelling that can name nothing is refused with the right one: an order that finds nothing looks
like one that was carried out.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from edgecache.brain.aws.requests import bucket_of_host
from edgecache.brain.core.errors import Invalid, KeyRefused, NoSuchBucket
from edgecache.brain.core.values import EnvironmentKey, check_key, check_url_key, host_name
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.http_caching.cache_keys import without_link
from edgecache.brain.http_caching.cache_tags import TAG_BYTES
from edgecache.http.addresses import parse_address
from edgecache.protocol.fields import FieldError
from edgecache.protocol.names import BUCKET

BUCKETS: Final = (
    "SELECT b.id, b.name, b.public_name, coalesce(o.kind, '') = 'http' AS is_http, b.website_index"
    " FROM brain_bucket b LEFT JOIN brain_origin o ON o.id = b.origin_id"
    " WHERE b.organization_id = %s AND b.environment_pk = %s"
)
HOSTS: Final = (
    "SELECT h.host, b.name FROM brain_host h JOIN brain_bucket b ON b.id = h.bucket_id"
    " WHERE b.organization_id = %s AND b.environment_pk = %s"
)
QUERY_LIMIT: Final = 2048
SHOWN_CHARS: Final = 200
PUBLIC: Final = "p"
URL: Final = re.compile(r"https?://", re.IGNORECASE)
ESCAPE: Final = re.compile("%[0-9A-Fa-f]{2}")
MALFORMED: Final = re.compile("%(?![0-9A-Fa-f]{2})")
# Of a query, as browsers send it.
SAFE_QUERY: Final = "/-._~!$&'()*+,;=:@?%"


class PastedBucket(NamedTuple):
    """A bucket of the environment. is_http: its origin speaks plain HTTP."""

    id: int
    name: str
    public_name: str
    is_http: bool
    website_index: str = ""


@dataclass(frozen=True, slots=True)
class PastedName:
    """What a text names. query: of a URL, None for all.

    key: of a prefix, how keys begin; of a tag, the tag.
    path: how a URL spells the key, '' for ``bucket/key``. page: the key of a website's document
    that a browser gets at the URL, '' if that is the key itself.
    """

    bucket: PastedBucket
    key: str
    query: str | None = None
    path: str = ""
    page: str = ""


class SpellingRefused(Exception):
    """A text that can name nothing; the sentence says what to write."""


class PastedNames:
    """Reads the names of one environment."""

    def __init__(
        self,
        buckets: Sequence[PastedBucket],
        hosts: Mapping[str, str],
        domains: Sequence[str],
    ) -> None:
        """hosts: names of buckets by host. domains: host names of the object API."""
        self.buckets = {bucket.name: bucket for bucket in buckets}
        self._public = {bucket.public_name: bucket for bucket in buckets}
        self._hosts = hosts
        self._domains = domains

    @classmethod
    async def of(
        cls, database: BrainDatabase, tenant: EnvironmentKey, domains: Sequence[str]
    ) -> "PastedNames":
        """Return the names of an environment. Raises DatabaseUnavailable."""
        buckets = [PastedBucket(*row) for row in await database.all(BUCKETS, tenant)]
        hosts = {row.host: row.name for row in await database.all(HOSTS, tenant)}
        return cls(buckets, hosts, domains)

    def read(
        self, keys: Iterable[str], prefixes: Iterable[str] = (), tags: Iterable[str] = ()
    ) -> tuple[list[PastedName], list[PastedName], list[PastedName]]:
        """Return what texts name, all or nothing.

        Raises Invalid, NoSuchBucket.
        """
        wrong: list[FieldError] = []
        missing: list[NoSuchBucket] = []

        def parsed(field: str, parse: Callable[[str], PastedName], text: str) -> list[PastedName]:
            try:
                return [parse(text)]
            except (SpellingRefused, KeyRefused) as refused:
                sentence = f'"{text[:SHOWN_CHARS]}" names nothing. {refused}'
                wrong.append(FieldError(field, sentence))
            except NoSuchBucket as none:
                missing.append(none)
            return []

        found = [name for text in keys for name in parsed("keys", self._key, text)]
        below = [name for text in prefixes for name in parsed("prefix", self._prefix, text)]
        tagged = [name for text in tags for name in parsed("tags", self._tag, text)]
        if wrong:
            raise Invalid(wrong)
        if missing:
            raise missing[0]
        return found, below, tagged

    def _key(self, text: str) -> PastedName:
        if text == "*":
            raise SpellingRefused("Send all: true for the whole environment.")
        found = self._from_url(text) if URL.match(text) else self._from_name(text)
        found = replace(found, key=found.page or found.key)
        bucket, key = found.bucket, found.key
        if (key == "*" or key.endswith("/*")) and not found.path.lower().endswith("%2a"):
            below = f"{bucket.name}/{key[:-1]}"
            raise SpellingRefused(f'Send prefix: "{below}" for all that begins so.')
        if not key and not bucket.is_http:
            raise SpellingRefused(f'Send prefix: "{bucket.name}/" for the whole bucket.')
        (check_url_key if bucket.is_http else check_key)(key)
        return found

    def _prefix(self, text: str) -> PastedName:
        found = self._from_url(text) if URL.match(text) else self._from_name(text)
        if found.query:
            raise SpellingRefused("A prefix has no query.")
        if found.key == "*" or found.key.endswith("/*"):
            raise SpellingRefused(f'Write "{found.bucket.name}/{found.key[:-1]}".')
        check_url_key(found.key)
        return found

    def _tag(self, text: str) -> PastedName:
        name, _, tag = text.partition("/")
        if not BUCKET.fullmatch(name) or not tag:
            raise SpellingRefused('Write "bucket/tag", with the name of a bucket.')
        if tag != tag.strip() or len(tag.encode(errors="replace")) > TAG_BYTES:
            raise SpellingRefused(
                f"A tag has 1 to {TAG_BYTES:,} bytes, without blanks at its ends."
            )
        return PastedName(self._bucket(name), tag)

    def _from_name(self, text: str) -> PastedName:
        """Return what ``bucket/key`` means."""
        name, slash, key = text.partition("/")
        if not name:
            raise SpellingRefused(f'Write "{text.lstrip("/")}", without the first slash.')
        if not slash:
            raise SpellingRefused(
                f'Write "{name}/key", or prefix: "{name}/" for the whole bucket.'
                if name in self.buckets
                else 'Write "bucket/key", or a URL.'
            )
        if not BUCKET.fullmatch(name):
            raise SpellingRefused('Write "bucket/key", with the name of a bucket, or a URL.')
        bucket = self._bucket(name)
        path, _, query = key.partition("?")
        if bucket.is_http:
            if ESCAPE.search(path):
                raise SpellingRefused(f'Write "{name}/{unquote(path)}", decoded, or the whole URL.')
            query = without_link(query)
            key = f"{path}?{query}" if query else path
        _check_path(bucket, path)
        _check_query(query)
        return PastedName(bucket, key)

    def _from_url(self, text: str) -> PastedName:
        try:
            parts = urlsplit(text)
            host = host_name(parts.netloc.rpartition("@")[2])
        except ValueError:
            raise SpellingRefused("It is not a URL.") from None
        path = parts.path.removeprefix("/")
        is_public = self._is_public(host, path)
        if MALFORMED.search(path):
            raise SpellingRefused("A percent sign needs two hexadecimal digits behind it.")
        bucket, path = self._of_host(host, path, is_public=is_public)
        try:
            key = unquote_to_bytes(path).decode()
        except UnicodeDecodeError:
            raise SpellingRefused("Its path is not UTF-8.") from None
        # Of objects, and at the object API, it names nothing that is kept, and may be a signature.
        has_queries = is_public and bucket.is_http
        query = without_link(quote(parts.query, safe=SAFE_QUERY)) if has_queries else ""
        _check_path(bucket, key)
        _check_query(query)
        is_folder = not key or key.endswith("/")
        page = key + bucket.website_index if is_public and is_folder else ""
        return PastedName(bucket, key, query or None, path or "/", page)

    def _is_public(self, host: str, path: str) -> bool:
        """True if a URL is plain HTTP. Below a bucket's name in virtual-host style all is a key."""
        is_below = path.partition("/")[0] == PUBLIC and not bucket_of_host(host, self._domains)
        return host in self._hosts or is_below

    def _of_host(self, host: str, path: str, *, is_public: bool) -> tuple[PastedBucket, str]:
        """Return the bucket that a host, or the path's beginning there, names, and the rest."""
        if host in self._hosts:
            return self._bucket(self._hosts[host]), path
        first, _, rest = path.partition("/")
        if is_public:
            public_name, _, rest = rest.partition("/")
            if public_name not in self._public:
                raise NoSuchBucket(f'There is no bucket with the public name "{public_name[:64]}".')
            return self._public[public_name], rest
        if name := bucket_of_host(host, self._domains):
            return self._bucket(name), path
        if host not in self._domains and parse_address(host.strip("[]")) is None:
            raise SpellingRefused(f'"{host[:SHOWN_CHARS]}" is not a host of a bucket.')
        return self._bucket(first), rest

    def _bucket(self, name: str) -> PastedBucket:
        found = self.buckets.get(name)
        if found is not None:
            return found
        public = self._public.get(name)
        if public is not None:
            sentence = f'"{name}" is the public name of "{public.name}": write "{public.name}/key".'
            raise NoSuchBucket(sentence)
        raise NoSuchBucket(f'There is no bucket "{name[:64]}".')


def _check_path(bucket: PastedBucket, path: str) -> None:
    if bucket.is_http and any(part in {".", ".."} for part in path.split("/")):
        raise SpellingRefused("No path has a '.' or '..' in it: write where it leads.")


def _check_query(query: str) -> None:
    if len(query) > QUERY_LIMIT:
        raise SpellingRefused(f"A query has at most {QUERY_LIMIT:,} characters.")
