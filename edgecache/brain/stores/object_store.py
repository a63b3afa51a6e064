"""A store at S3, or at Google Cloud Storage by its S3 endpoint.

Multipart uploads that a crash left are invisible and are paid for, so they are listed and aborted.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import structlog

from common.machine.reasons import reason
from edgecache.brain.aws import xml
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.sigv4.signing import OriginCredentials
from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import (
    OriginError,
    OriginFailed,
    Overloaded,
    StoreMissing,
    StoreUnavailable,
)
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import Span, StagedFile
from edgecache.brain.origins import s3
from edgecache.brain.origins.connections import (
    CONNECT_TIMEOUT_S,
    STALL_TIMEOUT_S,
    TRY_AGAIN,
    OriginConnections,
)
from edgecache.brain.stores.byte_store import Body, ListedFile
from edgecache.http.client import HttpClient

T = TypeVar("T")

log = structlog.get_logger(__name__)

# Stores take 10,000 parts of an object. Three of the smallest are in memory together, or one of the
# largest.
PART_BYTES: Final = 16 * 2**20
MAX_PART_BYTES: Final = 64 * 2**20
PARTS: Final = 10_000
CONCURRENT_PARTS: Final = 3
# One request each, kept whole: a slow reader must not hold a response of the store's open.
FIRST_WINDOW_BYTES: Final = 2**20
WINDOW_BYTES: Final = 4 * 2**20
# Bodies that are written, each with some parts in memory, and those of one organization.
CONCURRENT_WRITES: Final = 64
WRITES_OF_ONE: Final = 16
# Others wait as long as their clients would.
WAIT_S: Final = 20.0
# Names are random and written once, so a request may be sent again.
ATTEMPTS: Final = 3
PAUSE_S: Final = 0.2
# One request moves at most a part.
CALL_TIMEOUT_S: Final = 120.0
WRITES: Final = ("PUT", "POST")
# Where several objects cannot be deleted in one request.
CONCURRENT_DELETIONS: Final = 16
PAGES: Final = 1000


class StoreAnswer(NamedTuple):
    """A successful response. fields: its headers, names in lower case."""

    status: int
    fields: Mapping[str, str]
    body: bytes


class ObjectStore:
    """One bucket, and the prefix within it."""

    max_object_bytes: int = PARTS * MAX_PART_BYTES

    def __init__(self, location: s3.S3Location, credentials: OriginCredentials, label: str) -> None:
        """label: names it in the log."""
        self._client = HttpClient(connect_timeout_s=CONNECT_TIMEOUT_S, stall_s=STALL_TIMEOUT_S)
        self._requests = s3.S3Requests(OriginConnections(self._client), location, credentials)
        self._prefix = location.prefix
        self._is_google = location.is_google
        self._label = label
        self._writes = asyncio.Semaphore(CONCURRENT_WRITES)
        # Of organizations that write now.
        self._turns: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.stop()

    async def put(self, name: str, body: Body, size: int) -> None:
        """Write bytes, in parts where they are many. Raises Overloaded."""
        part_bytes = max(PART_BYTES, -(-size // PARTS))
        parts = _parts(body.path if isinstance(body, StagedFile) else body, part_bytes)
        async with self._turn():
            if size > part_bytes:
                concurrency = max(1, CONCURRENT_PARTS * PART_BYTES // part_bytes)
                await self._put_parts(name, parts, concurrency)
            else:
                whole = b"".join([part async for part in parts])
                await self._call("PUT", self._prefix + name, body=whole)

    async def read(self, name: str, span: Span) -> AsyncIterator[bytes]:
        """Yield bytes, some MiB with each request."""
        position, end, window = span.start, span.start + span.length, FIRST_WINDOW_BYTES
        while position < end:
            stop = min(position + window, end)
            headers = [("range", f"bytes={position}-{stop - 1}")]
            answer = await self._call("GET", self._prefix + name, headers=headers)
            is_range = answer.status == HTTPStatus.PARTIAL_CONTENT
            if not is_range or not 0 < len(answer.body) <= stop - position:
                raise StoreUnavailable from self._logged(
                    OriginFailed("The store did not answer with the range of bytes.")
                )
            position += len(answer.body)
            window = WINDOW_BYTES
            yield answer.body

    def file(self, name: str) -> Path | None:
        del name
        return None

    async def size(self, name: str) -> int:
        """Return the size that the store says."""
        answer = await self._call("HEAD", self._prefix + name)
        length = answer.fields.get("content-length", "")
        if not length.isascii() or not length.isdigit():
            raise StoreUnavailable from self._logged(
                OriginFailed("The store does not say how large an object is.")
            )
        return int(length)

    async def delete(self, names: Sequence[str]) -> None:
        keys = [self._prefix + name for name in names]
        for start in range(0, len(keys), s3.DELETIONS):
            some = keys[start : start + s3.DELETIONS]
            document = None if self._is_google or len(some) == 1 else s3.deletion(some)
            if document is None:
                await self._delete_each(some)
                continue
            headers = s3.deletion_headers(document)
            answer = await self._call(
                "POST", "", query={"delete": ""}, headers=headers, body=document
            )
            if await self._parsed(s3.failed_deletions(answer.body)):
                raise StoreUnavailable from self._logged(
                    OriginFailed("The store did not delete some objects.")
                )

    async def list(self, folder: str) -> AsyncIterator[Sequence[ListedFile]]:
        """Yield everything below a folder."""
        query = s3.listing_query(self._below(folder), s3.PAGE_KEYS)
        while True:
            answer = await self._call("GET", "", query=query)
            page = await self._parsed(s3.listing_of(answer.body, self._prefix))
            yield [ListedFile(row.key, row.last_modified) for row in page.objects]
            if page.next is None:
                return
            query["start-after"] = self._prefix + page.next

    async def abort_unfinished(self, folder: str, before: datetime) -> int:
        """Abort the uploads below a folder that began earlier; return their number."""
        query = {"uploads": "", "prefix": self._below(folder)}
        aborted = 0
        for _ in range(PAGES):
            answer = await self._call("GET", "", query=query)
            page = await self._parsed(xml.parse(answer.body, "ListMultipartUploadsResult"))
            for row in page.all("Upload"):
                if self._date(row.value("Initiated")) < before:
                    await self._delete(row.value("Key"), {"uploadId": row.value("UploadId")})
                    aborted += 1
            if page.value("IsTruncated") != "true":
                break
            query |= {
                "key-marker": page.value("NextKeyMarker"),
                "upload-id-marker": page.value("NextUploadIdMarker"),
            }
        return aborted

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Hold the permission to write a body. Raises Overloaded."""
        turns = self._turns.setdefault(SHARE_KEY.get()[0], asyncio.Semaphore(WRITES_OF_ONE))
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(WAIT_S):
                    await stack.enter_async_context(turns)
                    await stack.enter_async_context(self._writes)
            except TimeoutError:
                raise Overloaded from None
            yield

    async def _put_parts(self, name: str, parts: AsyncIterator[bytes], concurrency: int) -> None:
        """Write parts as they come; an incomplete upload is aborted later, as after a crash."""
        key = self._prefix + name
        answer = await self._call("POST", key, query={"uploads": ""}, attempts=1)
        begun = await self._parsed(xml.parse(answer.body, "InitiateMultipartUploadResult"))
        upload = {"uploadId": begun.value("UploadId")}
        room, sending = asyncio.Semaphore(concurrency), list[asyncio.Task[str]]()

        async def send(number: int, part: bytes) -> str:
            query = {**upload, "partNumber": str(number)}
            try:
                return (await self._call("PUT", key, query=query, body=part)).fields.get("etag", "")
            except StoreUnavailable:
                for task in sending[number:]:
                    task.cancel()
                raise
            finally:
                room.release()

        try:
            await room.acquire()
            async for part in parts:
                sending.append(asyncio.create_task(send(len(sending) + 1, part)))
                await room.acquire()
            etags = await asyncio.gather(*sending)
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
        rows: list[xml.Node] = [
            ("Part", [("PartNumber", number), ("ETag", etag)])
            for number, etag in enumerate(etags, 1)
        ]
        document = xml.document("CompleteMultipartUpload", rows)
        answer = await self._call("POST", key, query=upload, body=document, attempts=1)
        # It may be an error with the status 200.
        await self._parsed(xml.parse(answer.body, "CompleteMultipartUploadResult"))

    async def _delete_each(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), CONCURRENT_DELETIONS):
            some = keys[start : start + CONCURRENT_DELETIONS]
            await asyncio.gather(*(self._delete(key) for key in some))

    async def _delete(self, key: str, query: Mapping[str, str] | None = None) -> None:
        with suppress(StoreMissing):
            await self._call("DELETE", key, query=query)

    async def _call(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        attempts: int = ATTEMPTS,
    ) -> StoreAnswer:
        """Send a request, again if it fails. key: '' for the bucket.

        Raises StoreMissing, StoreUnavailable.
        """
        digest = await asyncio.to_thread(_sha256, body) if body else s3.NOTHING
        if method in WRITES:
            headers = [*dict([("content-length", str(len(body))), *headers]).items()]
        failure: Exception = OriginFailed()
        for attempt in range(attempts):
            await asyncio.sleep(PAUSE_S * attempt)
            try:
                async with (
                    asyncio.timeout(CALL_TIMEOUT_S),
                    self._requests.ask(
                        method,
                        key,
                        query=query,
                        headers=headers,
                        body=body,
                        payload_hash=digest,
                        attempts=1,
                    ) as reply,
                ):
                    data = await reply.text(s3.DOCUMENT_LIMIT_BYTES)
            except (OriginError, TimeoutError) as exc:
                failure = exc
                continue
            if reply.status < HTTPStatus.MULTIPLE_CHOICES:
                return StoreAnswer(reply.status, dict(reply.pairs), data)
            code = await s3.error_code(data)
            is_absent = reply.status == HTTPStatus.NOT_FOUND and code != "NoSuchBucket"
            if is_absent and method not in WRITES:
                raise StoreMissing(key)
            failure = OriginFailed(f"The store answered {reply.status} {code}".strip())
            if reply.status not in TRY_AGAIN:
                break
        raise StoreUnavailable from self._logged(failure)

    async def _parsed(self, parsing: Awaitable[T]) -> T:
        """Return what a document says. Raises StoreUnavailable if it is not what S3 says."""
        try:
            return await parsing
        except (OriginError, S3Error) as exc:
            raise StoreUnavailable from self._logged(exc)

    def _below(self, folder: str) -> str:
        return f"{self._prefix}{folder}/" if folder else self._prefix

    def _date(self, text: str) -> datetime:
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except ValueError as exc:
            raise StoreUnavailable from self._logged(exc)

    def _logged(self, exc: Exception) -> BaseException:
        """Return the cause of a failure, which goes to the log only."""
        cause = exc.__cause__ or exc
        log.warning("store_failed", store=self._label, reason=reason(cause))
        return cause


async def _parts(
    body: Path | bytes | AsyncIterator[bytes], part_bytes: int
) -> AsyncIterator[bytes]:
    """Yield a body in parts of a size. Raises StoreUnavailable if its file cannot be read."""
    if isinstance(body, bytes):
        yield body
    elif isinstance(body, Path):
        try:
            with await asyncio.to_thread(body.open, "rb") as file:
                while part := await asyncio.to_thread(file.read, part_bytes):
                    yield part
        except OSError as exc:
            raise StoreUnavailable from exc
    else:
        came = bytearray()
        async for piece in body:
            came += piece
            while len(came) >= part_bytes:
                yield bytes(came[:part_bytes])
                del came[:part_bytes]
        if came:
            yield bytes(came)


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def open_object_store(chosen: StoreSettings) -> ObjectStore:
    """Return the store of a URL; nothing is asked yet."""
    where = chosen.parts
    config = {"bucket": where.bucket, "addressing": "path"}
    if chosen.endpoint:
        config["endpoint"] = chosen.endpoint
    prefix = f"{where.path}/" if where.path else ""
    if where.scheme == "gs":
        location = s3.google_location(config, prefix)
    else:
        location = s3.location_of({**config, "region": chosen.region}, prefix)
    credentials = OriginCredentials(chosen.access_key, chosen.secret_key)
    return ObjectStore(location, credentials, chosen.name)
