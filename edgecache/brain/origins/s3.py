"""S3 origins, and Google Cloud Storage by its S3 endpoint. Keys are sent unchanged.

Nothing is taken from the machine's AWS_* variables. An origin's XML is untrusted and limited in
size.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_plus, urlsplit

from edgecache.brain.aws import xml
from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.sigv4.canonical import encoded
from edgecache.brain.aws.sigv4.signing import OriginCredentials, query_string, signed
from edgecache.brain.core.errors import (
    KeyTooLong,
    OriginDenied,
    OriginError,
    OriginFailed,
    OriginMissing,
    OriginRangeRefused,
    PreconditionFailed,
)
from edgecache.brain.core.loop_steps import in_steps
from edgecache.brain.core.paging import behind
from edgecache.brain.core.values import (
    KEY_LIMIT_BYTES,
    Conditions,
    KeyPage,
    ListedObject,
    Span,
    StagedFile,
    WrittenFields,
)
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.origins.connections import OriginConnections, Reply, Request, exchange
from edgecache.brain.origins.driver import PLAIN, OriginRequest, OriginResponse, WriteResult
from edgecache.brain.origins.headers import answer_of, date_of, etag_of, part_of

GOOGLE_HOST: Final = "storage.googleapis.com"
GOOGLE_REGION: Final = "auto"
DOCUMENT_LIMIT_BYTES: Final = 16 * 2**20
ERROR_LIMIT_BYTES: Final = 64 * 1024
PAGE_KEYS: Final = 1000
NOTHING: Final = hashlib.sha256(b"").hexdigest()
# The largest body of one PUT; a larger one is uploaded in parts.
PUT_LIMIT_BYTES: Final = 5 * 2**30
CONFLICTS: Final = frozenset({HTTPStatus.PRECONDITION_FAILED, HTTPStatus.CONFLICT})

DELETIONS: Final = 1000
# What XML 1.0 cannot hold.
UNSPEAKABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\r]")
CODE: Final = re.compile(r"[A-Za-z]{1,64}")


@dataclass(frozen=True, slots=True)
class S3Location:
    """Where the objects are. endpoint: the URL that a key follows, bucket included.

    is_google: Google Cloud Storage, which differs: it knows no POST that deletes several objects,
    ignores the conditions of a PUT, and decompresses objects for who does not accept gzip.
    """

    endpoint: str
    region: str
    prefix: str
    is_google: bool = False


def location_of(config: Mapping[str, str], prefix: str) -> S3Location:
    """Return the location that a checked configuration names; AWS's own when it has no endpoint."""
    bucket, region = config["bucket"], config["region"]
    endpoint = config.get("endpoint", f"https://s3.{region}.amazonaws.com").rstrip("/")
    # AWS's certificates have one label for the bucket: with a dot in it, only the path will do.
    by_host = "endpoint" not in config and "." not in bucket
    if config.get("addressing", "virtual" if by_host else "path") == "virtual":
        parts = urlsplit(endpoint)
        endpoint = f"{parts.scheme}://{bucket}.{parts.netloc}{parts.path}"
    else:
        endpoint = f"{endpoint}/{encoded(bucket)}"
    is_google = (urlsplit(endpoint).hostname or "").endswith(GOOGLE_HOST)
    return S3Location(endpoint, region, prefix, is_google=is_google)


def google_location(config: Mapping[str, str], prefix: str) -> S3Location:
    """Return the location of a bucket of Google Cloud Storage.

    Source: Google, "Simple migration from Amazon S3": signed as for S3, with an HMAC key.
    """
    chosen = {"region": GOOGLE_REGION, "endpoint": f"https://{GOOGLE_HOST}", **config}
    return replace(location_of(chosen, prefix), is_google=True)


class S3Requests:
    """Signed requests to one bucket. credentials: None asks anonymously."""

    def __init__(
        self,
        connections: OriginConnections,
        location: S3Location,
        credentials: OriginCredentials | None,
    ) -> None:
        self._connections = connections
        self._location = location
        self._credentials = credentials
        # Not signed: proxies of the provider change it. Google's "Transcoding of gzip-compressed
        # files": with it the bytes come as they are stored.
        self._unsigned = [("accept-encoding", "gzip")] if location.is_google else []

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        name: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | AsyncIterator[bytes] = b"",
        payload_hash: str = NOTHING,
        attempts: int = 0,
    ) -> AsyncIterator[Reply]:
        """Send a request and yield the reply. name: of an object; '' for the bucket.

        attempts: as for ``exchange``.

        Raises as ``exchange`` does.
        """
        url = f"{self._location.endpoint}/{encoded(name, safe='/')}"
        parts = urlsplit(url)
        search = query_string(query or {})
        sent = [("host", parts.netloc), *headers]
        if self._credentials is not None:
            sent = signed(
                self._credentials,
                method,
                (parts.path, search),
                sent,
                region=self._location.region,
                payload_hash=payload_hash,
                now=datetime.now(UTC),
            )
        sent = [*sent, *self._unsigned]
        request = Request(method, f"{url}?{search}" if search else url, sent, body)
        async with exchange(self._connections, request, attempts=attempts) as reply:
            yield reply


class S3Driver:
    """One bucket of an S3 origin. credentials: None asks anonymously."""

    def __init__(
        self,
        connections: OriginConnections,
        location: S3Location,
        credentials: OriginCredentials | None,
        data_directory: DataDirectory,
    ) -> None:
        self._ask = S3Requests(connections, location, credentials).ask
        self._prefix = location.prefix
        self._is_google = location.is_google
        self._data_directory = data_directory

    @asynccontextmanager
    async def get(self, key: str, request: OriginRequest = PLAIN) -> AsyncIterator[OriginResponse]:
        asking = self._ask(request.method, self._named(key), headers=request.ranged)
        async with asking as reply:
            if reply.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise OriginRangeRefused
            await _check(reply)
            answer = answer_of(reply.status, reply.pairs)
            if request.ranged:
                answer = part_of(answer)
            if answer.status == HTTPStatus.PARTIAL_CONTENT:
                raise OriginFailed("The origin sent a part of the object.")
            yield replace(answer, body=reply.body, is_complete=reply.is_complete)

    async def head(self, key: str) -> OriginResponse:
        """Get an object's metadata."""
        async with self._ask("HEAD", self._named(key)) as reply:
            await _check(reply)
            return answer_of(reply.status, reply.pairs)

    async def put(
        self, key: str, staged: StagedFile, fields: WrittenFields, conditions: Conditions
    ) -> WriteResult:
        """Write an object; its hash is signed, so the origin takes these bytes or none."""
        manifest = staged.manifest
        if self._is_google and _conditions(conditions):
            raise not_implemented("A write with a condition to Google Cloud Storage")
        if manifest.size > PUT_LIMIT_BYTES:
            raise OriginFailed("The origin does not accept more than 5 GiB in one request.")
        headers = [
            *_object_headers(fields),
            *_conditions(conditions),
            ("content-length", str(manifest.size)),
        ]
        body = (
            self._data_directory.read(staged.path, Span(0, manifest.size)) if manifest.size else b""
        )
        async with self._ask(
            "PUT",
            self._named(key),
            headers=headers,
            body=body,
            payload_hash=manifest.sha256.hex(),
        ) as reply:
            await _check(reply)
            answered = dict(reply.pairs)
            return WriteResult(
                etag_of(answered) or manifest.md5.hex(), date_of(answered.get("date", ""))
            )

    async def delete(self, keys: Sequence[str]) -> None:
        names = [self._named(key) for key in keys]
        body = deletion(names) if len(names) > 1 and not self._is_google else None
        if body is None:
            for name in names:
                await self._delete_one(name)
            return
        async with self._ask(
            "POST",
            "",
            query={"delete": ""},
            headers=deletion_headers(body),
            body=body,
            payload_hash=hashlib.sha256(body).hexdigest(),
        ) as reply:
            await _check(reply)
            failed = await failed_deletions(await reply.text(DOCUMENT_LIMIT_BYTES))
        if failed:
            raise OriginFailed(f"The origin did not delete {failed} of {len(names)} objects.")

    async def list(self, prefix: str, start_after: str, delimiter: str, limit: int) -> KeyPage:
        home = self._prefix
        query = listing_query(home + prefix, limit)
        if delimiter:
            query["delimiter"] = delimiter
        if start_after:
            query["start-after"] = home + behind(prefix, start_after, delimiter)
        async with self._ask("GET", "", query=query) as reply:
            await _check(reply)
            return await listing_of(await reply.text(DOCUMENT_LIMIT_BYTES), home)

    async def _delete_one(self, name: str) -> None:
        async with self._ask("DELETE", name) as reply:
            if reply.status != HTTPStatus.NOT_FOUND:
                await _check(reply)

    def _named(self, key: str) -> str:
        name = self._prefix + key
        if len(name.encode()) > KEY_LIMIT_BYTES:
            raise KeyTooLong("With its bucket's prefix the key is too long for the origin.")
        return name


def listing_query(prefix: str, limit: int) -> dict[str, str]:
    """Return the parameters that ask for the first page of keys with a prefix."""
    return {
        "list-type": "2",
        "encoding-type": "url",
        "max-keys": str(min(limit, PAGE_KEYS)),
        "prefix": prefix,
    }


async def listing_of(body: bytes, home: str) -> KeyPage:
    """Return the page that a ListBucketResult says, without the prefix that all its keys have.

    Raises OriginFailed.
    """
    root = await _parsed(body, "ListBucketResult")
    is_encoded = root.value("EncodingType") == "url"

    def read(text: str) -> str:
        return (unquote_plus(text) if is_encoded else text).removeprefix(home)

    def listed(row: xml.Element) -> ListedObject:
        return ListedObject(
            read(row.value("Key")),
            int(row.value("Size", "0")),
            row.value("ETag").strip('"'),
            datetime.fromisoformat(row.value("LastModified")).astimezone(UTC),
        )

    try:
        objects = await in_steps(listed, root.all("Contents"))
    except ValueError as exc:
        raise OriginFailed("The origin's listing is not one.", cause="xml-malformed") from exc
    prefixes = tuple(read(row.value("Prefix")) for row in root.all("CommonPrefixes"))
    is_more = root.value("IsTruncated") == "true"
    names = [row.key for row in objects] + list(prefixes)
    return KeyPage(tuple(objects), prefixes, max(names) if is_more and names else None)


def deletion(names: Sequence[str]) -> bytes | None:
    """Return the document that deletes objects; None where one cannot say it."""
    if len(names) > DELETIONS or any(UNSPEAKABLE.search(name) for name in names):
        return None
    rows: list[xml.Node] = [("Object", [("Key", name)]) for name in names]
    return xml.document("Delete", [("Quiet", "true"), *rows])


def deletion_headers(body: bytes) -> list[tuple[str, str]]:
    """Return the headers of a request with that document."""
    md5 = hashlib.md5(body, usedforsecurity=False).digest()
    return [("content-length", str(len(body))), ("content-md5", b64encode(md5).decode())]


async def failed_deletions(body: bytes) -> int:
    """Count the objects that were not deleted. Raises OriginFailed."""
    return len((await _parsed(body, "DeleteResult")).all("Error"))


async def error_code(body: bytes) -> str:
    """Return the code of an error document, or ''."""
    try:
        code = (await xml.parse(body, "Error")).value("Code")
    except S3Error:
        return ""
    return code if CODE.fullmatch(code) else ""


async def _parsed(body: bytes, root: str) -> xml.Element:
    try:
        return await xml.parse(body, root)
    except S3Error as exc:
        raise OriginFailed(
            "The origin's answer is not what S3 says.", cause="xml-malformed"
        ) from exc


def _object_headers(fields: WrittenFields) -> list[tuple[str, str]]:
    return [
        ("content-type", fields.content_type),
        *fields.headers.items(),
        *((f"x-amz-meta-{name}", value) for name, value in fields.metadata.items()),
    ]


def _conditions(conditions: Conditions) -> list[tuple[str, str]]:
    etags = (("if-match", conditions.if_match), ("if-none-match", conditions.if_none_match))
    return [
        (name, etag if etag == "*" else f'"{etag}"') for name, etag in etags if etag is not None
    ]


async def _check(reply: Reply) -> None:
    """Raise the error of an unsuccessful status."""
    if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return
    code = await error_code(await reply.text(ERROR_LIMIT_BYTES))
    if reply.status == HTTPStatus.NOT_FOUND and code != "NoSuchBucket":
        raise OriginMissing
    if reply.status in CONFLICTS:
        raise PreconditionFailed
    if reply.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise OriginDenied
    raise _failure(reply.status, code)


def _failure(status: int, code: str) -> OriginError:
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return OriginFailed(
            "The origin's bucket is elsewhere: look at its region and endpoint.",
            cause="bucket-elsewhere",
        )
    sentence = f"The origin answered {status}{f' ({code})' if code else ''}."
    return OriginFailed(sentence, cause=f"status-{status}")
