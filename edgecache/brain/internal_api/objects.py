"""``/v1/objects``: what the platform's members see of objects, and URLs to read and write them."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from edgecache.brain.access.platform_keys import LIMIT_S
from edgecache.brain.access.presigned_urls import ORIGIN_PARAMETER, UrlRequest, presigned_url
from edgecache.brain.core.errors import NoSuchBucket
from edgecache.brain.core.values import BucketInfo, EnvironmentKey, ObjectVersion, check_key
from edgecache.brain.directory.versions import Directory
from edgecache.brain.internal_api.bodies import take_tenant
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import FieldReader

KEY_CHARS: Final = 1024
DELIMITER_CHARS: Final = 16
PAGE: Final = 1000
MAX_DELETED_KEYS: Final = 1000
DELETE_BODY_BYTES: Final = 8 * 2**20
UPLOAD_ID_CHARS: Final = 64
TYPE_CHARS: Final = 255
DISPOSITION_CHARS: Final = 4096
MAX_PARTS: Final = 100
LAST_PART: Final = 10_000


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


class ObjectsApi:
    """The handlers. Each call names its tenant and one of its buckets."""

    def __init__(self, dependencies: InternalApiDependencies) -> None:
        self._directory = dependencies.directory
        self._objects = dependencies.objects
        self._platform_keys = dependencies.platform_keys

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/v1/objects", self._listing),
            Route("GET", "/v1/objects/details", self._one),
            Route("POST", "/v1/objects/delete", self._delete, body_limit_bytes=DELETE_BODY_BYTES),
            Route("POST", "/v1/objects/presigned-urls", self._presign),
        ]

    async def _listing(self, call: JsonCall) -> JsonResponse:
        query = FieldReader(dict(call.query), is_text=True)
        tenant, name = take_tenant(query), query.text("bucket")
        prefix = query.text("prefix", limit=KEY_CHARS, default="")
        after = query.text("after", limit=KEY_CHARS, default="")
        delimiter = query.text("delimiter", limit=DELIMITER_CHARS, default="")
        limit = query.integer("limit", minimum=1, maximum=PAGE)
        query.finish()
        bucket = await _bucket(self._directory, tenant, name)
        page = await self._objects.list(bucket, prefix, after, delimiter, limit)
        return JsonResponse(page)

    async def _one(self, call: JsonCall) -> JsonResponse:
        query = FieldReader(dict(call.query), is_text=True)
        tenant, name = take_tenant(query), query.text("bucket")
        key = query.text("key", limit=KEY_CHARS)
        query.finish()
        bucket = await _bucket(self._directory, tenant, name)
        found = await self._directory.find(bucket.id, check_key(key))
        return JsonResponse(_shape(found or await self._objects.head(bucket, key)))

    async def _delete(self, call: JsonCall) -> JsonResponse:
        body = FieldReader(call.body)
        tenant, name = take_tenant(body), body.text("bucket")
        keys = body.texts("keys", limit=MAX_DELETED_KEYS, length=KEY_CHARS)
        body.finish()
        await self._objects.delete(await _bucket(self._directory, tenant, name), keys)
        return JsonResponse(status=204)

    async def _presign(self, call: JsonCall) -> JsonResponse:
        body = FieldReader(call.body)
        tenant, name = take_tenant(body), body.text("bucket")
        key, endpoint = body.text("key", limit=KEY_CHARS), body.text("endpoint")
        expires_s = body.integer("expires_s", minimum=1, maximum=LIMIT_S)
        step, requests = _url_requests(body)
        body.finish()
        await _bucket(self._directory, tenant, name)
        signer = self._platform_keys.key_of(tenant, can_write=step is not PresignedStep.GET)
        now, target = datetime.now(UTC), (name, check_key(key))
        urls = [
            presigned_url(signer, endpoint, target, each, expires_s=expires_s, now=now)
            for each in requests
        ]
        return JsonResponse({"method": METHODS[step], "urls": urls})


async def _bucket(directory: Directory, tenant: EnvironmentKey, name: str) -> BucketInfo:
    bucket = await directory.bucket(tenant, name)
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


def _url_requests(body: FieldReader) -> tuple[PresignedStep, list[UrlRequest]]:
    """Take what each URL permits; several for the parts of an upload."""
    step = body.choice("step", PresignedStep)
    shared = _parameters(body, step)
    content_type = body.text("content_type", limit=TYPE_CHARS, default="")
    headers = {"content-type": content_type} if content_type else {}
    if body.text("if_none_match", limit=1, default=""):
        headers["if-none-match"] = "*"
        if step not in WRITING:
            body.wrong("if_none_match", "belongs to the steps that write the object", None)
    each = (
        [{"partNumber": number} for number in _part_numbers(body)]
        if step is PresignedStep.PART
        else [{}]
    )
    method = METHODS.get(step, "")
    return step, [
        UrlRequest(method=method, parameters=shared | own, headers=headers) for own in each
    ]


def _parameters(body: FieldReader, step: PresignedStep) -> dict[str, str]:
    """Take the parameters that all URLs of a step have."""
    upload_id = body.text("upload_id", limit=UPLOAD_ID_CHARS, default="")
    disposition = body.text("disposition", limit=DISPOSITION_CHARS, default="")
    if bool(upload_id) != (step in OF_UPLOADS):
        body.wrong("upload_id", "belongs to the steps of an upload in parts", None)
    found = {
        ORIGIN_PARAMETER: body.text("origin", default=""),
        "response-content-disposition": disposition,
        "uploadId": upload_id,
    }
    found = {name: value for name, value in found.items() if value}
    return found | {"uploads": ""} if step is PresignedStep.CREATE else found


def _part_numbers(body: FieldReader) -> list[str]:
    message = f"must be a number from 1 to {LAST_PART}"
    return [*body.values("part_numbers", _part_number, message, limit=MAX_PARTS)]


def _part_number(value: Any) -> str | None:
    return str(value) if type(value) is int and 1 <= value <= LAST_PART else None
