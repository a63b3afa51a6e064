"""Multipart uploads that a crash left in an S3 store: listed and aborted.

obstore lists none. They are invisible, and are paid for until they are aborted.
"""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

import httpcore

from edgecache.brain.aws import xml
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.sigv4.canonical import encoded
from edgecache.brain.aws.sigv4.signing import OriginCredentials
from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import OriginError, StoreUnavailable
from edgecache.brain.origins.connections import OriginConnections
from edgecache.brain.origins.s3 import DOCUMENT_LIMIT_BYTES, S3Place, S3Requests

PAGES: Final = 1000
DONE: Final = frozenset({HTTPStatus.OK, HTTPStatus.NO_CONTENT})


class S3Uploads:
    """The unfinished uploads of one bucket."""

    def __init__(self, chosen: StoreSettings) -> None:
        self._credentials = OriginCredentials(chosen.access_key, chosen.secret_key)
        prefix = f"{chosen.parts.path}/" if chosen.parts.path else ""
        endpoint = chosen.endpoint or f"https://s3.{chosen.region}.amazonaws.com"
        bucket = encoded(chosen.parts.bucket)
        self._place = S3Place(f"{endpoint}/{bucket}", chosen.region, prefix)

    async def abort(self, folder: str, before: datetime) -> int:
        """Abort those below a folder that began earlier; return their number.

        Raises StoreUnavailable.
        """
        try:
            async with httpcore.AsyncConnectionPool() as pool:
                requests = S3Requests(OriginConnections(pool), self._place, self._credentials)
                return await self._abort(requests, folder, before)
        except (OriginError, S3Error, ValueError):
            raise StoreUnavailable from None

    async def _abort(self, requests: S3Requests, folder: str, before: datetime) -> int:
        parameters = {"uploads": "", "prefix": f"{self._place.prefix}{folder}/"}
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
