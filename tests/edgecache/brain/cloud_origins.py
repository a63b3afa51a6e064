"""The parts of Google Cloud Storage and Azure Blob Storage that the drivers use."""

import base64
import hmac
import re
from email.utils import formatdate
from functools import cache
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.edgecache.brain.http_origin import Asked
from tests.edgecache.brain.s3_origin import S3Origin, Stored

ACCOUNT_KEY = base64.b64encode(b"azure account key").decode()


@cache
def _key() -> rsa.RSAPrivateKey:
    """Return a key, which takes a second to make on a busy machine."""
    return rsa.generate_private_key(65537, 2048)


def service_account() -> tuple[dict[str, str], rsa.RSAPublicKey]:
    """Return a service account's file, and its public key."""
    key = _key()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    account = {"client_email": "brain@example.com", "private_key": pem, "private_key_id": "k1"}
    return account, key.public_key()


class Google(S3Origin):
    """Cloud Storage's XML API, similar to S3. public: the service account's public key."""

    public: rsa.RSAPublicKey | None = None

    def _refusal(self, asked: Asked, path: str, query: str) -> str:
        given = asked.headers.get("authorization", "")
        if self.public is None:
            return given and "a credential where none was configured"
        claims = jwt.decode(given.removeprefix("Bearer "), self.public, ["RS256"])
        return "" if claims["iss"] == "brain@example.com" else "another account"


class Azure(S3Origin):
    """The part of Azure Blob Storage that the driver uses."""

    def _refusal(self, asked: Asked, path: str, query: str) -> str:
        given = asked.headers.get("authorization", "")
        headers = "".join(
            f"{name}:{asked.headers[name]}\n"
            for name in sorted(asked.headers)
            if name[:5] == "x-ms-"
        )
        fields = [asked.method, *(asked.headers.get(name, "") for name in SIGNED)]
        fields[3] = "" if fields[3] == "0" else fields[3]
        resource = f"/acc{path}" + "".join(
            f"\n{name.lower()}:{value}"
            for name, value in sorted(parse_qsl(query, keep_blank_values=True))
        )
        text = "\n".join(fields) + "\n" + headers + resource
        digest = hmac.digest(b"azure account key", text.encode(), "sha256")
        expected = f"SharedKey acc:{base64.b64encode(digest).decode()}"
        return "" if given == expected else f"wrong signature: {asked.method} {asked.target}"

    async def _put(self, asked: Asked, key: str) -> None:
        names = {
            "x-ms-blob-content-type": "content-type",
            "x-ms-blob-cache-control": "cache-control",
        }
        for name, plain in names.items():
            if name in asked.headers:
                asked.headers[plain] = asked.headers[name]
        if asked.headers.get("if-none-match") == "*" and key in self.store:
            await asked.answer(b"", status="409 Conflict")
            return
        kept = {
            name: value
            for name, value in asked.headers.items()
            if name in {"content-type", "cache-control"} or name.startswith("x-ms-meta-")
        }
        self.store[key] = Stored(asked.body, kept)
        await asked.answer(b"", f'ETag: "{self.store[key].etag}"', status="201 Created")

    async def _answer(self, asked: Asked) -> None:
        if "comp=batch" in asked.target:
            await self._batch(asked)
        else:
            await super()._answer(asked)

    async def _batch(self, asked: Asked) -> None:
        parts = []
        for number, path in enumerate(re.findall(rb"DELETE /store/(\S+) HTTP", asked.body)):
            found = self.store.pop(unquote(path.decode()), None)
            status = "202 Accepted" if found else "404 Not Found"
            parts.append(
                f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                f"HTTP/1.1 {status}\r\nx-ms-request-id: 1\r\n\r\n"
            )
        body = "".join(parts) + "--batch--\r\n"
        await asked.answer(
            body.encode(), "Content-Type: multipart/mixed; boundary=batch", status="202 Accepted"
        )

    async def _list(self, asked: Asked, given: dict[str, str]) -> None:
        prefix, delimiter = given.get("prefix", ""), given.get("delimiter", "")
        at = "Fri, 02 Jan 2026 03:04:05 GMT" if self.listed_at else formatdate(usegmt=True)
        rows, groups = [], []
        for key, stored in sorted(self.store.items()):
            if not key.startswith(prefix) or key < given.get("startFrom", ""):
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            if cut < 0:
                rows.append(
                    f"<Blob><Name>{escape(key)}</Name><Properties>"
                    f"<Last-Modified>{at}</Last-Modified>"
                    f"<Content-Length>{len(stored.data)}</Content-Length>"
                    f"<Content-Type>a/b</Content-Type><Etag>{stored.etag}</Etag>"
                    f"</Properties></Blob>"
                )
            elif key[: cut + 1] not in groups:
                groups.append(key[: cut + 1])
        found = "".join(f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>" for name in groups)
        body = f"<EnumerationResults><Blobs>{''.join(rows)}{found}</Blobs></EnumerationResults>"
        await asked.answer(body.encode(), "Content-Type: application/xml")


SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
