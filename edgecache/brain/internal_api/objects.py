"""``/v1/objects``: what the platform's members see of objects, and URLs to read and write them."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final
from urllib.parse import quote

from msgspec import Meta

from edgecache.brain.access import signed_links
from edgecache.brain.access.platform_keys import LIMIT_S
from edgecache.brain.access.presigned_urls import (
    ORIGIN_PARAMETER,
    FormRequest,
    UrlRequest,
    presigned_form,
    presigned_url,
)
from edgecache.brain.core.errors import Invalid, KeyRefused, NoSuchBucket, NoSuchHost
from edgecache.brain.core.values import BucketInfo, Deletion, ObjectVersion, check_key, has_dots
from edgecache.brain.directory.pasted_names import SAFE_QUERY
from edgecache.brain.http_caching.cache_keys import LINK_PARAMETER, SAFE
from edgecache.brain.internal_api.bodies import TenantMessage, charged_tenant
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.objects.object_versions import position_of
from edgecache.brain.objects.version_listing import ListedVersion
from edgecache.protocol.fields import NO_NUL, Count, FieldError, Text

PAGE: Final = 1000
DELETE_BODY_BYTES: Final = 8 * 2**20
DISPOSITION_CHARS: Final = 4096
MAX_PARTS: Final = 100
LAST_PART: Final = 10_000
NULL: Final = "null"
VERSION_PATTERN: Final = r"^(|null|[0-9a-f]{32})$"


class PresignedStep(StrEnum):
    """What a presigned URL is for: to read an object, to write it whole, or a step in parts."""

    GET = "get"
    PUT = "put"
    CREATE = "create"
    PART = "part"
    COMPLETE = "complete"
    ABORT = "abort"


METHODS: Final = {
    PresignedStep.GET: "GET",
    PresignedStep.PUT: "PUT",
    PresignedStep.CREATE: "POST",
    PresignedStep.PART: "PUT",
    PresignedStep.COMPLETE: "POST",
    PresignedStep.ABORT: "DELETE",
}
OF_UPLOADS: Final = frozenset((PresignedStep.PART, PresignedStep.COMPLETE, PresignedStep.ABORT))
WRITING: Final = frozenset((PresignedStep.PUT, PresignedStep.COMPLETE))


class ObjectsQuery(TenantMessage, frozen=True, kw_only=True):
    """A page of a bucket's keys."""

    bucket: Text
    prefix: Text = ""
    after: Text = ""
    delimiter: Text = ""
    limit: Annotated[int, Meta(ge=1, le=PAGE)]


class ObjectQuery(TenantMessage, frozen=True, kw_only=True):
    """One key of a bucket."""

    bucket: Text
    key: Text


class VersionsQuery(ObjectsQuery, frozen=True, kw_only=True):
    """A page of a bucket's versions. after_version: of the key ``after``; empty behind them all."""

    after_version: Annotated[str, Meta(pattern=VERSION_PATTERN)] = ""


class VersionQuery(ObjectQuery, frozen=True, kw_only=True):
    """One version of a key; ``null`` for what was written without versions."""

    version_id: Annotated[str, Meta(pattern=VERSION_PATTERN)]


class ObjectsDeletion(TenantMessage, frozen=True, kw_only=True):
    """Keys of a bucket to delete."""

    bucket: Text
    keys: list[Text]


class PresignRequest(ObjectQuery, frozen=True, kw_only=True):
    """What each URL permits; several URLs for the parts of an upload.

    origin: the host that the client signs in from. if_none_match: ``*`` or empty.
    """

    endpoint: Text
    expires_s: Annotated[int, Meta(ge=1, le=LIMIT_S)]
    step: PresignedStep
    origin: Text = ""
    upload_id: Text = ""
    disposition: Annotated[str, Meta(max_length=DISPOSITION_CHARS, pattern=NO_NUL)] = ""
    content_type: Text = ""
    if_none_match: Text = ""
    version_id: Annotated[str, Meta(pattern=VERSION_PATTERN)] = ""
    part_numbers: Annotated[
        list[Annotated[int, Meta(ge=1, le=LAST_PART)]], Meta(max_length=MAX_PARTS)
    ] = []


class LinkRequest(TenantMessage, frozen=True, kw_only=True):
    """What a link opens: a key, with the query of its URL, or all keys that begin with a prefix.

    endpoint: of the object API. host: of the bucket, '' for ``/p/{public_name}/``.
    """

    bucket: Text
    key: Text = ""
    prefix: Text = ""
    query: Text = ""
    endpoint: Text
    host: Text = ""
    expires_s: Annotated[int, Meta(ge=1, le=signed_links.LIMIT_S)]


class PresignFormRequest(ObjectQuery, frozen=True, kw_only=True):
    """What a form permits. is_prefix: the key goes on with the name of the file."""

    endpoint: Text
    expires_s: Annotated[int, Meta(ge=1, le=LIMIT_S)]
    is_prefix: bool
    max_bytes: Count
    content_type: Text = ""
    redirect_url: Text = ""


class ObjectsApi:
    """The handlers. Each call names its tenant and one of its buckets."""

    def __init__(self, dependencies: InternalApiDependencies) -> None:
        self._directory = dependencies.directory
        self._objects = dependencies.objects
        self._platform_keys = dependencies.platform_keys
        self._link_keys = dependencies.link_keys
        self._hosts = dependencies.hosts

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/v1/objects", self._listing),
            Route("GET", "/v1/objects/details", self._one),
            Route("GET", "/v1/objects/versions", self._versions),
            Route("POST", "/v1/objects/versions/restore", self._restore),
            Route("POST", "/v1/objects/versions/delete", self._delete_version),
            Route("POST", "/v1/objects/delete", self._delete, body_limit_bytes=DELETE_BODY_BYTES),
            Route("POST", "/v1/objects/presigned-urls", self._presign),
            Route("POST", "/v1/objects/signed-links", self._link),
            Route("POST", "/v1/objects/presigned-forms", self._presign_form),
        ]

    async def _listing(self, call: JsonCall) -> JsonResponse:
        query = call.read_query(ObjectsQuery)
        bucket = await self._bucket(query, query.bucket)
        page = await self._objects.list(
            bucket, query.prefix, query.after, query.delimiter, query.limit
        )
        return JsonResponse(page)

    async def _one(self, call: JsonCall) -> JsonResponse:
        query = call.read_query(ObjectQuery)
        bucket = await self._bucket(query, query.bucket)
        found = await self._directory.find(bucket.id, check_key(query.key))
        return JsonResponse(_shape(found or await self._objects.head(bucket, query.key)))

    async def _versions(self, call: JsonCall) -> JsonResponse:
        query = call.read_query(VersionsQuery)
        bucket = await self._bucket(query, query.bucket)
        position = position_of(query.after_version) if len(query.after_version) > len(NULL) else 0
        page = await self._objects.list_versions(
            bucket, query.prefix, query.after, position, query.delimiter, query.limit
        )
        last = page.last
        return JsonResponse(
            {
                "versions": [_version(row) for row in page.versions],
                "prefixes": page.prefixes,
                "next": last.key if isinstance(last, ListedVersion) else last,
                "next_version": last.marker if isinstance(last, ListedVersion) else "",
            }
        )

    async def _restore(self, call: JsonCall) -> JsonResponse:
        query = call.read(VersionQuery)
        bucket = await self._bucket(query, query.bucket)
        place = (bucket, query.key)
        copied = await self._objects.copy(place, *place, version_id=_stored_id(query.version_id))
        return JsonResponse({"version_id": copied.version_id or NULL})

    async def _delete_version(self, call: JsonCall) -> JsonResponse:
        query = call.read(VersionQuery)
        bucket = await self._bucket(query, query.bucket)
        wanted = [Deletion(query.key, _stored_id(query.version_id))]
        await self._objects.delete_versions(bucket, wanted)
        return JsonResponse(status=204)

    async def _delete(self, call: JsonCall) -> JsonResponse:
        body = call.read(ObjectsDeletion)
        await self._objects.delete(await self._bucket(body, body.bucket), body.keys)
        return JsonResponse(status=204)

    async def _presign(self, call: JsonCall) -> JsonResponse:
        body = call.read(PresignRequest)
        requests = _url_requests(body)
        bucket = await self._bucket(body, body.bucket)
        can_write = body.step is not PresignedStep.GET
        signer = self._platform_keys.key_of(bucket.tenant, can_write=can_write)
        now, target = datetime.now(UTC), (bucket.name, check_key(body.key))
        urls = [
            presigned_url(signer, body.endpoint, target, each, expires_s=body.expires_s, now=now)
            for each in requests
        ]
        return JsonResponse({"method": METHODS[body.step], "urls": urls})

    async def _link(self, call: JsonCall) -> JsonResponse:
        body = call.read(LinkRequest)
        bucket = await self._bucket(body, body.bucket)
        _check_link(body, bucket)
        base = f"{body.endpoint}/p/{bucket.public_name}/"
        if body.host:
            hosts = {row.host for row in await self._hosts.of(bucket.tenant, bucket.id)}
            if body.host not in hosts:
                raise NoSuchHost
            base = f"{body.endpoint.partition('://')[0]}://{body.host}/"
        expires_at = int(time.time()) + body.expires_s
        key, is_prefix = body.prefix or body.key, bool(body.prefix)
        query = self._link_keys.signed_query(
            bucket, key, expires_at=expires_at, is_prefix=is_prefix, query=body.query
        )
        url = f"{base}{quote(key, safe=SAFE)}?{query}"
        expires = datetime.fromtimestamp(expires_at, UTC)
        return JsonResponse({"url": url, "query": query, "expires_at": expires})

    async def _presign_form(self, call: JsonCall) -> JsonResponse:
        body = call.read(PresignFormRequest)
        bucket = await self._bucket(body, body.bucket)
        fields = {
            "content-type": body.content_type,
            "success_action_redirect": body.redirect_url,
        }
        wanted = FormRequest(
            key=check_key(body.key),
            is_prefix=body.is_prefix,
            max_bytes=body.max_bytes,
            fields={name: value for name, value in fields.items() if value},
        )
        url, signed = presigned_form(
            self._platform_keys.key_of(bucket.tenant, can_write=True),
            body.endpoint,
            bucket.name,
            wanted,
            expires_s=body.expires_s,
            now=datetime.now(UTC),
        )
        return JsonResponse({"url": url, "fields": signed})

    async def _bucket(self, message: TenantMessage, name: str) -> BucketInfo:
        bucket = await self._directory.bucket(charged_tenant(message), name)
        if bucket is None:
            raise NoSuchBucket
        return bucket


def _shape(found: ObjectVersion) -> dict[str, Any]:
    return {
        "key": found.key,
        "size": found.size,
        "etag": found.etag,
        "last_modified": found.last_modified,
        "content_type": found.content_type,
        "headers": dict(found.sent_headers),
        "metadata": dict(found.metadata),
    }


def _check_link(body: LinkRequest, bucket: BucketInfo) -> None:
    """Raise Invalid or KeyRefused for what no link opens."""
    if bool(body.key) == bool(body.prefix):
        raise Invalid([FieldError("key", "name a key, or a prefix")])
    if has_dots(check_key(body.prefix or body.key)):
        raise KeyRefused("A link has no '.' or '..' between slashes.")
    if body.query and (body.prefix or bucket.origin_id is None):
        raise Invalid([FieldError("query", "belongs to a key of a bucket with an origin")])
    query = body.query
    if quote(query, safe=SAFE_QUERY) != query or signed_links.has_link(query):
        sentence = f"write it as a URL has it, without {LINK_PARAMETER}…"
        raise Invalid([FieldError("query", sentence)])


def _version(row: ListedVersion) -> dict[str, Any]:
    shown = asdict(row) | {"version_id": row.version_id or NULL}
    del shown["position"]
    return shown


def _stored_id(version_id: str) -> str:
    return "" if version_id == NULL else version_id


def _url_requests(body: PresignRequest) -> list[UrlRequest]:
    """Return what each URL permits. Raises Invalid."""
    if body.if_none_match and body.step not in WRITING:
        sentence = "belongs to the steps that write the object"
        raise Invalid([FieldError("if_none_match", sentence)])
    if body.version_id and body.step is not PresignedStep.GET:
        raise Invalid([FieldError("version_id", "belongs to the step that reads the object")])
    if bool(body.upload_id) != (body.step in OF_UPLOADS):
        raise Invalid([FieldError("upload_id", "belongs to the steps of an upload in parts")])
    headers = {
        "content-type": body.content_type,
        "if-none-match": "*" if body.if_none_match else "",
    }
    parameters = {
        ORIGIN_PARAMETER: body.origin,
        "response-content-disposition": body.disposition,
        "uploadId": body.upload_id,
        "versionId": body.version_id,
    }
    shared = {name: value for name, value in parameters.items() if value}
    if body.step is PresignedStep.CREATE:
        shared["uploads"] = ""
    is_part = body.step is PresignedStep.PART
    each = [{"partNumber": str(number)} for number in body.part_numbers] if is_part else [{}]
    return [
        UrlRequest(
            method=METHODS[body.step],
            parameters=shared | own,
            headers={name: value for name, value in headers.items() if value},
        )
        for own in each
    ]
