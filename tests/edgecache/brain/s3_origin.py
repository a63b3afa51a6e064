"""S3 origins that check every signature with botocore instead of our own code."""

import gzip
import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote_plus, unquote
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.edgecache.brain.http_origin import Asked, HttpOrigin

ACCESS = "AKIAORIGIN"
SECRET = "origin/secret+key"
SAFE = "-_.~"


@dataclass
class Stored:
    """An object of the origin."""

    data: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        """Return the MD5, as S3 does."""
        return hashlib.md5(self.data, usedforsecurity=False).hexdigest()


@dataclass
class S3Origin(HttpOrigin):
    """One bucket named ``store``. wrong: the signature errors it found.

    takes_ranges: False: they are ignored. listed_at: when objects were modified, by listings;
    empty: when the listing was asked for.
    """

    region: ClassVar[str] = "eu-test-1"

    store: dict[str, Stored] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    takes_ranges: bool = False
    listed_at: str = "2026-01-02T03:04:05.000Z"

    @property
    def config(self) -> dict[str, str]:
        """Return the origin's configuration."""
        return {"bucket": "store", "region": self.region, "endpoint": self.url}

    @property
    def secret(self) -> dict[str, str]:
        """Return the origin's credentials."""
        return {"access_key_id": ACCESS, "secret_access_key": SECRET}

    async def _answer(self, asked: Asked) -> None:
        path, _, query = asked.target.partition("?")
        bucket, _, key = path[1:].partition("/")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        refusal = self._refusal(asked, path, query)
        if refusal or bucket != "store":
            self.wrong.append(refusal)
            await asked.answer(
                b"<Error><Code>SignatureDoesNotMatch</Code></Error>", status="403 No"
            )
        elif "delete" in parameters:
            await self._delete_many(asked)
        elif not key:
            await self._list(asked, parameters)
        else:
            await getattr(self, f"_{asked.method.lower()}")(asked, unquote(key))

    async def _get(self, asked: Asked, key: str) -> None:
        stored = self.store.get(key)
        if stored is None:
            await asked.answer(b"<Error><Code>NoSuchKey</Code></Error>", status="404 Not Found")
            return
        kept = (f"{name}: {value}" for name, value in stored.headers.items())
        fields = [f'ETag: "{stored.etag}"', f"Last-Modified: {formatdate(1e9, usegmt=True)}", *kept]
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", asked.headers.get("range", ""))
        if span is None or not self.takes_ranges:
            await asked.answer(stored.data, *fields)
            return
        first, last = int(span[1]), min(int(span[2]), len(stored.data) - 1)
        fields.append(f"Content-Range: bytes {first}-{last}/{len(stored.data)}")
        await asked.answer(stored.data[first : last + 1], *fields, status="206 Partial Content")

    _head = _get

    async def _put(self, asked: Asked, key: str) -> None:
        current = self.store.get(key)
        wanted = asked.headers.get("if-match", "").strip('"')
        if asked.headers.get("if-none-match") == "*" and current:
            await asked.answer(b"", status="412 Precondition Failed")
            return
        if wanted and (current is None or wanted not in {"*", current.etag}):
            await asked.answer(
                b"", status="412 Precondition Failed" if current else "404 Not Found"
            )
            return
        kept = {
            name: value
            for name, value in asked.headers.items()
            if name.startswith("x-amz-meta-") or name in {"content-type", "cache-control"}
        }
        self.store[key] = Stored(asked.body, kept)
        await asked.answer(
            b"", f'ETag: "{self.store[key].etag}"', f"Date: {formatdate(1e9, usegmt=True)}"
        )

    async def _delete(self, asked: Asked, key: str) -> None:
        self.store.pop(key, None)
        asked.head("204 No Content")
        await asked.say(b"")

    async def _delete_many(self, asked: Asked) -> None:
        for row in ET.fromstring(asked.body).iter():  # noqa: S314 - from our own client
            if row.tag.endswith("Key"):
                self.store.pop(row.text or "", None)
        await asked.answer(b"<DeleteResult/>")

    async def _list(self, asked: Asked, given: dict[str, str]) -> None:
        prefix, after = given.get("prefix", ""), given.get("start-after", "")
        delimiter, limit = given.get("delimiter", ""), int(given.get("max-keys", "1000"))
        items: dict[str, Stored | None] = {}
        for key in sorted(self.store):
            if not key.startswith(prefix) or key <= after:
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key if cut < 0 else key[: cut + len(delimiter)]
            if name not in items and len(items) == limit:
                break
            items.setdefault(name, self.store[key] if cut < 0 else None)
        else:
            limit = -1
        is_encoded = given.get("encoding-type") == "url"
        at = self.listed_at or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}"
        rows = "".join(
            _row(_encoded(name) if is_encoded else name, stored, at)
            for name, stored in items.items()
        )
        await asked.answer(
            f"<ListBucketResult>{'<EncodingType>url</EncodingType>' if is_encoded else ''}"
            f"<IsTruncated>{str(limit >= 0).lower()}</IsTruncated>{rows}"
            "</ListBucketResult>".encode()
        )

    def _refusal(self, asked: Asked, path: str, query: str) -> str:
        given = asked.headers.get("authorization", "")
        if f"Credential={ACCESS}/" not in given:
            return "not signed"
        signed = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        request = AWSRequest(
            asked.method,
            f"http://{asked.headers['host']}{path}?{query}",
            headers={name: asked.headers[name] for name in signed},
            data=asked.body,
        )
        request.context.update(timestamp=asked.headers["x-amz-date"], payload_signing_enabled=True)
        auth: Any = S3SigV4Auth(Credentials(ACCESS, SECRET), "s3", self.region)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        if not given.endswith(f"Signature={auth.signature(text, request)}"):
            return f"wrong signature: {asked.method} {asked.target}"
        if hashlib.sha256(asked.body).hexdigest() != asked.headers["x-amz-content-sha256"]:
            return "wrong payload"
        return ""


@dataclass
class GoogleOrigin(S3Origin):
    """Google Cloud Storage's S3 endpoint, with what it does in another way."""

    region: ClassVar[str] = "auto"

    @property
    def config(self) -> dict[str, str]:
        """Return the origin's configuration."""
        return {"bucket": "store", "endpoint": self.url}

    async def _get(self, asked: Asked, key: str) -> None:
        stored = self.store.get(key)
        is_packed = stored is not None and stored.headers.get("content-encoding") == "gzip"
        if stored is None or not is_packed or "gzip" in asked.headers["accept-encoding"]:
            await super()._get(asked, key)
            return
        await asked.answer(gzip.decompress(stored.data), f'ETag: "{stored.etag}"')

    _head = _get

    async def _put(self, asked: Asked, key: str) -> None:
        # It ignores the conditions of a PUT.
        for name in ("if-match", "if-none-match"):
            asked.headers.pop(name, None)
        await super()._put(asked, key)

    async def _delete(self, asked: Asked, key: str) -> None:
        if key not in self.store:
            await asked.answer(b"<Error><Code>NoSuchKey</Code></Error>", status="404 Not Found")
            return
        await super()._delete(asked, key)

    async def _delete_many(self, asked: Asked) -> None:
        self.wrong.append("POST ?delete is not implemented for objects.")
        await asked.answer(b"<Error><Code>NotImplemented</Code></Error>", status="501 No")

    def _refusal(self, asked: Asked, path: str, query: str) -> str:
        signed = asked.headers.get("authorization", "").partition("SignedHeaders=")[2]
        if "accept-encoding" in signed.partition(",")[0]:
            return "a proxy of Google's changes Accept-Encoding"
        return super()._refusal(asked, path, query)


def _row(name: str, stored: Stored | None, at: str) -> str:
    text = escape(name)
    if stored is None:
        return f"<CommonPrefixes><Prefix>{text}</Prefix></CommonPrefixes>"
    return (
        f"<Contents><Key>{text}</Key><Size>{len(stored.data)}</Size>"
        f"<ETag>&quot;{stored.etag}&quot;</ETag>"
        f"<LastModified>{at}</LastModified></Contents>"
    )


def _encoded(name: str) -> str:
    """Encode as AWS does: spaces as plus signs."""
    return quote_plus(name, safe=SAFE + "/")
