"""A store at S3, Google Cloud Storage or Azure, through obstore.

obstore does not list multipart uploads that a crash left in an S3 store. They are invisible and
are paid for, so they are listed and aborted here.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpcore
import obstore
import orjson
import structlog
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from common.machine.reasons import reason
from edgecache.brain.aws import xml
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.sigv4.canonical import encoded
from edgecache.brain.aws.sigv4.signing import OriginCredentials
from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import OriginError, StoreMissing, StoreUnavailable
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import Span
from edgecache.brain.origins.connections import OriginConnections
from edgecache.brain.origins.obstores import GOOGLE, google_token
from edgecache.brain.origins.s3 import DOCUMENT_LIMIT_BYTES, S3Location, S3Requests
from edgecache.brain.stores.byte_store import Body, ListedFile, request_permits

if TYPE_CHECKING:
    from obstore.store import AzureCredential, S3Config

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
LIST_STEP: Final = 1000
# Bodies that are written; as many requests that read.
MAX_CONCURRENT_REQUESTS: Final = 64
# One request moves at most a part.
CLIENT: Final[dict[str, Any]] = {
    "connect_timeout": timedelta(seconds=5),
    "read_timeout": timedelta(seconds=30),
    "timeout": timedelta(seconds=120),
    "user_agent": "zonal",
}
RETRY: Final[dict[str, Any]] = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}

PAGES: Final = 1000
DONE: Final = frozenset({HTTPStatus.OK, HTTPStatus.NO_CONTENT})


class S3Uploads:
    """The unfinished uploads of one bucket."""

    def __init__(self, chosen: StoreSettings) -> None:
        self._credentials = OriginCredentials(chosen.access_key, chosen.secret_key)
        prefix = f"{chosen.parts.path}/" if chosen.parts.path else ""
        endpoint = chosen.endpoint or f"https://s3.{chosen.region}.amazonaws.com"
        bucket = encoded(chosen.parts.bucket)
        self._location = S3Location(f"{endpoint}/{bucket}", chosen.region, prefix)

    async def abort(self, folder: str, before: datetime) -> int:
        """Abort those below a folder that began earlier; return their number.

        Raises StoreUnavailable.
        """
        try:
            async with httpcore.AsyncConnectionPool() as pool:
                requests = S3Requests(OriginConnections(pool), self._location, self._credentials)
                return await self._abort(requests, folder, before)
        except (OriginError, S3Error, ValueError) as exc:
            raise StoreUnavailable from exc

    async def _abort(self, requests: S3Requests, folder: str, before: datetime) -> int:
        parameters = {"uploads": "", "prefix": f"{self._location.prefix}{folder}/"}
        aborted = 0
        for _ in range(PAGES):
            async with requests.ask("GET", "", query=parameters) as reply:
                if reply.status not in DONE:
                    raise StoreUnavailable
                body = await reply.text(DOCUMENT_LIMIT_BYTES)
            page = await xml.parse(body, "ListMultipartUploadsResult")
            for row in page.all("Upload"):
                if datetime.fromisoformat(row.value("Initiated")).astimezone(UTC) >= before:
                    continue
                upload = {"uploadId": row.value("UploadId")}
                async with requests.ask("DELETE", row.value("Key"), query=upload) as reply:
                    # Another brain may have aborted it.
                    if reply.status not in DONE | {HTTPStatus.NOT_FOUND}:
                        raise StoreUnavailable
                aborted += 1
            if page.value("IsTruncated") != "true":
                break
            parameters |= {
                "key-marker": page.value("NextKeyMarker"),
                "upload-id-marker": page.value("NextUploadIdMarker"),
            }
        return aborted


class ObjectStore:
    """One bucket or container, and the prefix within it."""

    max_object_bytes: int = PARTS * MAX_PART_BYTES

    def __init__(
        self,
        store: S3Store | GCSStore | AzureStore,
        label: str,
        uploads: S3Uploads | None = None,
    ) -> None:
        """label: names it in the log. uploads: what obstore cannot list."""
        self._store = store
        self._label = label
        self._uploads = uploads
        self.reads = request_permits(MAX_CONCURRENT_REQUESTS)
        self.writes = request_permits(MAX_CONCURRENT_REQUESTS)

    async def put(self, name: str, body: Body, size: int) -> None:
        """Write bytes, in parts where they are many. Raises Overloaded."""
        part_bytes = max(PART_BYTES, -(-size // PARTS))
        concurrency = max(1, CONCURRENT_PARTS * PART_BYTES // part_bytes)
        async with self.writes.permit(SHARE_KEY.get()):
            if not isinstance(body, Path | bytes):
                await self._put_pieces(name, body, part_bytes, concurrency)
                return
            with self._named(name):
                await obstore.put_async(
                    self._store,
                    name,
                    body,
                    use_multipart=size > PART_BYTES,
                    chunk_size=part_bytes,
                    max_concurrency=concurrency,
                )

    async def _put_pieces(
        self, name: str, pieces: AsyncIterator[bytes], part_bytes: int, concurrency: int
    ) -> None:
        """Write pieces as they arrive; an incomplete upload is aborted later, as after a crash."""
        writer = obstore.open_writer_async(
            self._store, name, buffer_size=part_bytes, max_concurrency=concurrency
        )
        async for piece in pieces:
            with self._named(name):
                await writer.write(piece)
        with self._named(name):
            await writer.close()

    async def read(self, name: str, span: Span) -> AsyncIterator[bytes]:
        """Yield bytes, some MiB with each request. Raises Overloaded before the first ones."""
        position, end, window = span.start, span.start + span.length, FIRST_WINDOW_BYTES
        while position < end:
            # A response that has begun would be cut short.
            has_begun = position > span.start
            async with self.reads.permit(SHARE_KEY.get(), has_no_timeout=has_begun):
                with self._named(name):
                    piece = bytes(
                        await obstore.get_range_async(
                            self._store, name, start=position, end=min(position + window, end)
                        )
                    )
            if not piece:
                raise StoreMissing
            position += len(piece)
            window = WINDOW_BYTES
            yield piece

    async def size(self, name: str) -> int:
        """Return the size that the store says. Raises Overloaded."""
        async with self.reads.permit(SHARE_KEY.get()):
            with self._named(name):
                return (await obstore.head_async(self._store, name))["size"]

    async def delete(self, names: Sequence[str]) -> None:
        if not names:
            return
        try:
            with self._named(names[0]):
                await obstore.delete_async(self._store, list(names))
        except StoreMissing:
            # Only S3 takes absent ones in its stride: delete the others one by one.
            for name in names:
                await self._delete_one(name)

    async def _delete_one(self, name: str) -> None:
        try:
            with self._named(name):
                await obstore.delete_async(self._store, name)
        except StoreMissing:
            return

    async def list(self, folder: str) -> AsyncIterator[Sequence[ListedFile]]:
        """Yield everything below a folder."""
        stream = obstore.list(self._store, folder, chunk_size=LIST_STEP)
        while True:
            with self._named(""):
                try:
                    metas = await anext(stream)
                except StopAsyncIteration:
                    return
            yield [
                ListedFile(meta["path"], meta["last_modified"].astimezone(UTC)) for meta in metas
            ]

    async def abort_unfinished(self, folder: str, before: datetime) -> int:
        """Abort them at S3; Azure drops unused blocks, and Google has rules of the bucket."""
        if self._uploads is None:
            return 0
        return await self._uploads.abort(folder, before)

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Map obstore's errors; their texts name addresses of ours and go to the log only."""
        try:
            yield
        except FileNotFoundError as exc:
            if "NoSuchBucket" in str(exc):
                self._failed(exc)
                raise StoreUnavailable from exc
            raise StoreMissing(name) from None
        except (exceptions.BaseError, ValueError, OSError) as exc:
            self._failed(exc)
            raise StoreUnavailable from exc

    def _failed(self, exc: Exception) -> None:
        log.warning("store_failed", store=self._label, reason=reason(exc))


def open_object_store(chosen: StoreSettings) -> ObjectStore:
    """Return the store of a URL; nothing is asked yet."""
    client = {**CLIENT, "allow_http": chosen.endpoint.startswith("http://")}
    if chosen.parts.scheme == "gs":
        return ObjectStore(_open_gcs(chosen, client), chosen.name)
    if chosen.parts.scheme == "az":
        return ObjectStore(_open_azure(chosen, client), chosen.name)
    return ObjectStore(_open_s3(chosen, client), chosen.name, S3Uploads(chosen))


def _open_s3(chosen: StoreSettings, client: dict[str, Any]) -> S3Store:
    config: S3Config = {
        "access_key_id": chosen.access_key,
        "secret_access_key": chosen.secret_key,
        "region": chosen.region,
        "virtual_hosted_style_request": False,
    }
    if chosen.endpoint:
        config["endpoint"] = chosen.endpoint
    where = chosen.parts
    return S3Store(
        where.bucket,
        prefix=where.path or None,
        config=config,
        client_options=client,  # type: ignore[arg-type]  # built from parts
        retry_config=RETRY,  # type: ignore[arg-type]  # as above
    )


def _open_gcs(chosen: StoreSettings, client: dict[str, Any]) -> GCSStore:
    account = orjson.loads(chosen.secret_key)
    where = chosen.parts
    return GCSStore(
        where.bucket,
        prefix=where.path or None,
        config={"base_url": chosen.endpoint or GOOGLE},
        credential_provider=lambda: google_token(account),
        client_options=client,  # type: ignore[arg-type]  # as above
        retry_config=RETRY,  # type: ignore[arg-type]  # as above
    )


def _open_azure(chosen: StoreSettings, client: dict[str, Any]) -> AzureStore:
    credential: AzureCredential = {"access_key": chosen.secret_key, "expires_at": None}
    where = chosen.parts
    return AzureStore(
        where.bucket,
        prefix=where.path or None,
        config={
            "account_name": where.account,
            "endpoint": chosen.endpoint or f"https://{where.account}.blob.core.windows.net",
            "use_emulator": False,
        },
        credential_provider=lambda: credential,
        client_options=client,  # type: ignore[arg-type]  # as above
        retry_config=RETRY,  # type: ignore[arg-type]  # as above
    )
