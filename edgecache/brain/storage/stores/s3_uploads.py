"""Multipart uploads that a crash left in an S3 store: listed and aborted.

obstore lists none. They are invisible, and are paid for until they are aborted.
"""

import hashlib
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import httpcore

from edgecache.brain.errors import StoreUnavailable
from edgecache.brain.origins.signing import Credentials, query_string, signed
from edgecache.brain.s3 import xml
from edgecache.brain.s3.auth.sigv4.canonical import encoded
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.storage.stores.settings import StoreSettings

EMPTY: Final = hashlib.sha256(b"").hexdigest()
TIMEOUTS: Final = dict.fromkeys(("connect", "read", "write", "pool"), 30.0)
PAGES: Final = 1000


class S3Uploads:
    """The unfinished uploads of one bucket."""

    def __init__(self, chosen: StoreSettings) -> None:
        self._credentials = Credentials(chosen.access_key, chosen.secret_key)
        self._region = chosen.region
        self._prefix = f"{chosen.parts.path}/" if chosen.parts.path else ""
        self._endpoint = chosen.endpoint or f"https://s3.{chosen.region}.amazonaws.com"
        self._path = f"/{encoded(chosen.parts.bucket)}"

    async def abort(self, folder: str, before: datetime) -> int:
        """Abort those below a folder that began earlier; return their number.

        Raises StoreUnavailable.
        """
        parameters = {"uploads": "", "prefix": f"{self._prefix}{folder}/"}
        aborted = 0
        async with httpcore.AsyncConnectionPool() as pool:
            for _ in range(PAGES):
                page = await _page(await self._ask(pool, "GET", self._path, parameters))
                for row in page.all("Upload"):
                    if _moment(row.value("Initiated")) < before:
                        key = f"{self._path}/{encoded(row.value('Key'), safe='/')}"
                        await self._ask(pool, "DELETE", key, {"uploadId": row.value("UploadId")})
                        aborted += 1
                if page.value("IsTruncated") != "true":
                    break
                parameters |= {
                    "key-marker": page.value("NextKeyMarker"),
                    "upload-id-marker": page.value("NextUploadIdMarker"),
                }
        return aborted

    async def _ask(
        self,
        pool: httpcore.AsyncConnectionPool,
        method: str,
        path: str,
        parameters: dict[str, str],
    ) -> bytes:
        query = query_string(parameters)
        headers = signed(
            self._credentials,
            method,
            (path, query),
            [("host", urlsplit(self._endpoint).netloc)],
            region=self._region,
            payload_hash=EMPTY,
            now=datetime.now(UTC),
        )
        url = f"{self._endpoint}{path}?{query}"
        try:
            answer = await pool.request(
                method, url, headers=headers, extensions={"timeout": TIMEOUTS}
            )
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError):
            raise StoreUnavailable from None
        # Another brain may have aborted it.
        if answer.status not in {200, 204} and (method, answer.status) != ("DELETE", 404):
            raise StoreUnavailable
        return answer.content


async def _page(body: bytes) -> xml.Element:
    try:
        return await xml.parse(body, "ListMultipartUploadsResult")
    except S3Error:
        raise StoreUnavailable from None


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise StoreUnavailable from None
