"""CORS of requests: which rules apply, answers to preflights, and the headers of other answers.

Rules are found before the request's signature is checked: a browser sends its preflight without
credentials, and scripts can read an error only if it has CORS headers, too. So the bucket is found
by the request's claims: the access key in a presigned URL or in its Authorization header names the
environment, a public name the bucket itself.

The preflight of a request that will be signed in its header has neither, nor has a form that cannot
be read, and bucket names are unique within an environment only: it is allowed if any bucket of that
name allows it. That reveals nothing: without a match the answer is the same whether such a bucket
exists or not, and the request itself is checked again by its own bucket.
"""

import re
from typing import Any, Final

import orjson

from edgecache.brain.access.access_keys import AccessKeys
from edgecache.brain.access.platform_keys import is_platform_key
from edgecache.brain.access.presigned_urls import ORIGIN_PARAMETER
from edgecache.brain.aws import post_policy
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.sigv2 import KEY_PARAMETER
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.versions import Directory
from edgecache.brain.s3.context import S3Response
from edgecache.brain.s3.cors.rules import ANY, METHODS, CorsRule, first_match, loaded
from edgecache.http.headers import Headers
from edgecache.http.response_head import HeaderPairs
from edgecache.runtime.bounded_cache import BoundedCache

ORIGIN: Final = "origin"
REQUEST_METHOD: Final = "access-control-request-method"
REQUEST_HEADERS: Final = "access-control-request-headers"
# On every answer under rules: a cache must not hand one origin's to another.
VARY: Final = (
    "vary",
    "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
)

# Later buckets of the same name do not count: they must not displace earlier ones.
NAMESAKES: Final = 50
KEPT_BYTES: Final = 16 * 2**20
# Measured: parsed rules take up to this many times the bytes of their JSON.
PARSED_FACTOR: Final = 8
ENTRY_BYTES: Final = 300

OF_BUCKET: Final = "SELECT cors FROM brain_bucket WHERE id = %s"
OF_NAME: Final = (
    "SELECT cors FROM brain_bucket WHERE name = %s AND cors <> '[]' ORDER BY id LIMIT %s"
)
_WEB_ORIGIN: Final = re.compile(r"https?://[^\s/*]{1,300}")
_CREDENTIAL: Final = re.compile(r"Credential=([^/,\s]+)/")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Rules = tuple[CorsRule, ...]
Known = BoundedCache[int | str, tuple[Rules, int]]


class CorsRules:
    """The rules of buckets, in memory until a bucket changes."""

    def __init__(self, database: BrainDatabase, directory: Directory, keys: AccessKeys) -> None:
        self._database = database
        self._directory = directory
        self._keys = keys
        self._by_id: Known = BoundedCache(KEPT_BYTES // 2, lambda _, entry: entry[1])
        self._by_name: Known = BoundedCache(KEPT_BYTES // 2, lambda _, entry: entry[1])
        self._changes = 0
        directory.coherence.subscribe("bucket", self._forget)
        directory.coherence.on_loss(self._forget_all)

    async def of_request(self, request: S3Request) -> Rules:
        """Return the rules of the bucket that a request names; none if it is not known.

        Raises DatabaseUnavailable.
        """
        own = _of_platform(request)
        bucket = await self._bucket(request)
        return own if bucket is None else (*own, *await self.of_bucket(bucket))

    async def of_preflight(self, request: S3Request) -> Rules:
        """Return the rules that a preflight falls under. Raises DatabaseUnavailable."""
        own = _of_platform(request)
        bucket = await self._bucket(request)
        if bucket is not None:
            return (*own, *await self.of_bucket(bucket))
        if _claimed_key(request) or not request.bucket:
            return own
        return await self._load(self._by_name, request.bucket, OF_NAME, [request.bucket, NAMESAKES])

    async def of_bucket(self, bucket: BucketInfo) -> Rules:
        """Return a bucket's rules. Raises DatabaseUnavailable."""
        return await self._load(self._by_id, bucket.id, OF_BUCKET, [bucket.id])

    async def _bucket(self, request: S3Request) -> BucketInfo | None:
        key_id = _claimed_key(request)
        if key_id:
            key = await self._keys.find(key_id)
            if key is None:
                return None
            return await self._directory.bucket(key.tenant, request.bucket)
        bucket = await self._directory.bucket_by_public_name(request.bucket)
        return bucket if bucket is not None and bucket.is_public else None

    async def _load(self, kept: Known, name: int | str, sql: Any, params: list[Any]) -> Rules:
        coherence = self._directory.coherence
        known = kept.get(name) if coherence.is_current else None
        if known is not None:
            return known[0]
        changes = self._changes
        rows = await self._database.all(sql, params)
        found = tuple(rule for row in rows for rule in loaded(row.cors))
        if coherence.is_current and changes == self._changes:
            size = sum(len(orjson.dumps(row.cors)) for row in rows)
            kept.put(name, (found, ENTRY_BYTES + size * PARSED_FACTOR))
        return found

    def _forget(self, bucket_id: int) -> None:
        self._changes += 1
        self._by_id.pop(bucket_id)
        # A new bucket may have any name.
        self._by_name.clear()

    def _forget_all(self) -> None:
        self._changes += 1
        self._by_id.clear()
        self._by_name.clear()


def headers_of(rules: Rules, method: str, headers: Headers) -> HeaderPairs:
    """Return the CORS headers of the answer to a request with an Origin."""
    if not rules:
        return ()
    origin = headers.get(ORIGIN)
    rule = first_match(rules, origin, method)
    return (VARY,) if rule is None else (*_allowed(rule, origin), VARY)


def check_preflight(headers: Headers) -> None:
    """Refuse an OPTIONS request that is not a preflight. Raises S3Error BadRequest."""
    if not headers.get(ORIGIN):
        raise S3Error("BadRequest", "Insufficient information. Origin request header needed.")
    method = headers.get(REQUEST_METHOD)
    if method not in METHODS:
        raise S3Error("BadRequest", f"Invalid Access-Control-Request-Method: {method[:20] or None}")


def preflight(rules: Rules, headers: Headers) -> S3Response:
    """Answer a preflight that ``check_preflight`` accepted.

    Raises S3Error AccessForbidden, with one text for a bucket without rules, one whose rules do not
    allow the request, and one that does not exist.
    """
    origin, method = headers.get(ORIGIN), headers.get(REQUEST_METHOD)
    text = ",".join(headers.get_all(REQUEST_HEADERS))
    wanted = [name.strip().lower() for name in text.split(",") if name.strip()]
    rule = None
    if all(_NAME.fullmatch(name) for name in wanted):
        rule = first_match(rules, origin, method, wanted)
    if rule is None:
        raise S3Error("AccessForbidden", extra={"Method": method}, headers=dict([VARY]))
    found = [*_allowed(rule, origin), VARY]
    if wanted:
        found.append(("access-control-allow-headers", ", ".join(wanted)))
    return S3Response(headers=found)


def _of_platform(request: S3Request) -> Rules:
    """Return the rule for the origin that a URL of the platform's names."""
    origin = request.query(ORIGIN_PARAMETER)
    if not _WEB_ORIGIN.fullmatch(origin) or not is_platform_key(_claimed_key(request)):
        return ()
    rule = CorsRule(
        id="",
        origins=(origin,),
        methods=("GET", "PUT", "POST", "DELETE"),
        headers=("content-type", "if-none-match"),
        exposed=("ETag",),
        max_age_s=None,
        allows_credentials=False,
    )
    return (rule,)


def _claimed_key(request: S3Request) -> str:
    """Return the id of the access key that a request names, not yet verified.

    Only where ``authenticate`` would verify it: without that a request is anonymous.
    """
    if request.form is not None:
        return post_policy.claimed_key(request.form.fields)
    credential = request.query("X-Amz-Credential")
    if credential and (request.has("X-Amz-Algorithm") or request.has("X-Amz-Signature")):
        return credential.partition("/")[0]
    match = _CREDENTIAL.search(request.header("authorization"))
    return match[1] if match is not None else request.query(KEY_PARAMETER)


def _allowed(rule: CorsRule, origin: str) -> list[tuple[str, str]]:
    allowed = rule.allowed_origin(origin)
    found = [
        ("access-control-allow-origin", allowed),
        ("access-control-allow-methods", ", ".join(rule.methods)),
    ]
    if allowed != ANY and rule.allows_credentials:
        found.append(("access-control-allow-credentials", "true"))
    if rule.exposed:
        found.append(("access-control-expose-headers", ", ".join(rule.exposed)))
    if rule.max_age_s is not None:
        found.append(("access-control-max-age", str(rule.max_age_s)))
    return found
