"""Buckets with a Google or Azure origin, which is reached only through the brain's proxy."""

import base64
import hashlib
import hmac
import re
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from edgecache.brain.errors import (
    KeyRefused,
    OriginDenied,
    OriginFailed,
    OriginMissing,
    OriginTimeout,
    PreconditionFailed,
)
from edgecache.brain.values import BucketInfo, Conditions, Fields
from tests.edgecache.brain import certificates
from tests.edgecache.brain.brains import Brain, Rows, running, settled
from tests.edgecache.brain.http_origin import Asked
from tests.edgecache.brain.s3_origin import S3Origin, Stored

ACCOUNT_KEY = base64.b64encode(b"azure account key").decode()
AMBIENT = {
    "AWS_ACCESS_KEY_ID": "AKIAAMBIENT",
    "AWS_SECRET_ACCESS_KEY": "ambient",
    "AWS_SESSION_TOKEN": "ambient",
    "AWS_REGION": "ambient-1",
    "AWS_ENDPOINT_URL": "https://127.0.0.1:1",
    "AWS_PROFILE": "ambient",
    "AZURE_STORAGE_ACCOUNT_NAME": "ambient",
    "AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"ambient").decode(),
    "AZURE_STORAGE_SAS_KEY": "sig=ambient",
    "AZURE_STORAGE_TOKEN": "ambient",
    "AZURE_STORAGE_ENDPOINT": "https://127.0.0.1:1",
    "AZURE_USE_AZURE_CLI": "true",
    "GOOGLE_SERVICE_ACCOUNT_KEY": '{"private_key_id": "ambient"}',
    "GOOGLE_BEARER_TOKEN": "ambient",
    "GOOGLE_BASE_URL": "https://127.0.0.1:1",
    "HTTPS_PROXY": "http://127.0.0.1:1",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "ALL_PROXY": "http://127.0.0.1:1",
    "NO_PROXY": "127.0.0.1",
}


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
    """Azure Blob Storage, as far as the driver uses it."""

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
        rows, groups = [], []
        for key, stored in sorted(self.store.items()):
            if not key.startswith(prefix) or key < given.get("startFrom", ""):
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            if cut < 0:
                rows.append(
                    f"<Blob><Name>{escape(key)}</Name><Properties>"
                    f"<Last-Modified>Fri, 02 Jan 2026 03:04:05 GMT</Last-Modified>"
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
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type"),
    *("date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set credentials in the environment that must not be used."""
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
async def brain(ambient: None, rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain that trusts the tests' certificate authority."""
    trust, _ = certificates.issue(tmp_path, "127.0.0.1")
    async with running(rows.url, tmp_path / "brain", trust=trust, stall_timeout_s=2) as one:
        yield one


@pytest.fixture(params=["google", "azure"])
async def origin(
    request: pytest.FixtureRequest, tmp_path: Path, brain: Brain
) -> AsyncIterator[tuple[S3Origin, BucketInfo]]:
    """Return an origin with a bucket of the brain."""
    make = {"google": google, "azure": azure}[request.param]
    server, config, secret = make(brain, tmp_path)
    async with server:
        config["endpoint"] = server.url
        kind = "gcs" if request.param == "google" else "azure"
        yield server, await brain.origin_bucket(kind, config, secret, prefix="home/")
    assert server.wrong == []


def google(brain: Brain, tmp_path: Path) -> tuple[Google, dict[str, str], dict[str, str]]:
    """Create a service account and its origin."""
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    account = {
        "client_email": "brain@example.com",
        "private_key": pem,
        "private_key_id": "k1",
        # The key file also contains these URLs, which must not be used.
        "token_uri": "https://127.0.0.1:1/token",
        "gcs_base_url": "https://127.0.0.1:1",
    }
    server = Google(tls=serving(brain, tmp_path))
    server.public = key.public_key()
    return server, {"bucket": "store"}, {"service_account": orjson.dumps(account).decode()}


def azure(brain: Brain, tmp_path: Path) -> tuple[Azure, dict[str, str], dict[str, str]]:
    """Create an account and its origin."""
    server = Azure(tls=serving(brain, tmp_path))
    return server, {"account": "acc", "container": "store"}, {"account_key": ACCOUNT_KEY}


def serving(brain: Brain, tmp_path: Path) -> ssl.SSLContext:
    """Return a server TLS context of the authority that the brain trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    return context


async def test_objects_are_written_read_listed_and_deleted(
    brain: Brain, origin: tuple[S3Origin, BucketInfo]
) -> None:
    server, bucket = origin
    fields = Fields("text/plain", {"cache-control": "max-age=9"})

    written = await brain.put(bucket, "dir/ü k", b"hello", fields)
    assert server.store["home/dir/ü k"].data == b"hello"
    assert server.store["home/dir/ü k"].headers["content-type"] == "text/plain"
    assert server.store["home/dir/ü k"].headers["cache-control"] == "max-age=9"
    assert written.etag == hashlib.md5(b"hello", usedforsecurity=False).hexdigest()
    assert await brain.get(bucket, "dir/ü k") == b"hello"

    server.store["home/there"] = Stored(b"x" * 700_000, {"Content-Type": "a/b"})
    assert await brain.get(bucket, "there") == b"x" * 700_000
    await settled(brain)
    found = await brain.directory.find(bucket.id, "there")
    assert found is not None
    assert found.content_type == "a/b"

    listing = await brain.objects.list(bucket, delimiter="/")
    assert ([row.key for row in listing.objects], listing.prefixes) == (["there"], ("dir/",))
    partial = await brain.objects.list(bucket, prefix="di")
    assert [row.key for row in partial.objects] == ["dir/ü k"]
    assert partial.objects[0].size == 5

    await brain.objects.delete(bucket, ["there", "dir/ü k", "never"])
    assert server.store == {}


async def test_listing_pages_are_consecutive(
    brain: Brain, origin: tuple[S3Origin, BucketInfo]
) -> None:
    server, bucket = origin
    names = ["a", "b/1", "b/2", "b0", "c/1", "z"]
    server.store.update({f"home/{name}": Stored(b"x") for name in [*names]})
    server.store["homeless"] = Stored(b"x")

    for delimiter, expected in (("/", ["a", "b/", "b0", "c/", "z"]), ("", names)):
        seen: list[str] = []
        start: str | None = ""
        while start is not None:
            page = await brain.objects.list(bucket, "", start, delimiter, 2)
            seen += sorted([row.key for row in page.objects] + list(page.prefixes))
            start = page.next
        assert seen == expected


@pytest.mark.parametrize("key", ["a//b", "../k", "a/", "/a", ".", "a/./b", "x\x01y"])
async def test_a_key_that_the_driver_would_change_is_refused(
    brain: Brain, origin: tuple[S3Origin, BucketInfo], key: str
) -> None:
    server, bucket = origin

    with pytest.raises(KeyRefused):
        await brain.put(bucket, key, b"x")
    with pytest.raises(KeyRefused):
        await brain.objects.open(bucket, key)
    assert server.asked == []


async def test_an_absent_object_is_missing(
    brain: Brain, origin: tuple[S3Origin, BucketInfo]
) -> None:
    _, bucket = origin

    with pytest.raises(OriginMissing):
        await brain.objects.open(bucket, "k")
    with pytest.raises(OriginMissing):
        await brain.objects.head(bucket, "k")


async def test_creating_an_existing_object_is_refused(
    brain: Brain, origin: tuple[S3Origin, BucketInfo]
) -> None:
    server, bucket = origin
    server.store["home/k"] = Stored(b"there")

    with pytest.raises(PreconditionFailed):
        await brain.put(bucket, "k", b"x", conditions=Conditions(if_match="other"))
    if isinstance(server, Azure):
        with pytest.raises(PreconditionFailed):
            await brain.put(bucket, "k", b"x", conditions=Conditions(if_none_match=True))
    assert server.store["home/k"].data == b"there"


async def breaks_off(asked: Asked) -> None:
    """Send fewer bytes than announced."""
    asked.head("200 OK", "Content-Length: 1000000", 'ETag: "x"', LAST)
    await asked.say(b"x" * 100)
    asked.writer.close()


async def stalls(asked: Asked) -> None:
    """Send fewer bytes than announced and keep the connection open."""
    asked.head("200 OK", "Content-Length: 1000000", 'ETag: "x"', LAST)
    await asked.say(b"x" * 100)
    await asked.reader.read()


async def refuses(asked: Asked) -> None:
    """Refuse every credential."""
    await asked.answer(b"", status="403 Forbidden")


LAST = "Last-Modified: Fri, 02 Jan 2026 03:04:05 GMT"


@pytest.mark.parametrize(
    ("handler", "error"),
    [(breaks_off, OriginFailed), (stalls, (OriginTimeout, OriginFailed)), (refuses, OriginDenied)],
)
async def test_a_failure_is_a_specific_error_and_leaves_nothing(
    brain: Brain,
    origin: tuple[S3Origin, BucketInfo],
    handler: Callable[[Asked], object],
    error: type[Exception],
) -> None:
    server, bucket = origin
    server.handler = handler  # type: ignore[assignment]  # one of the three above

    with pytest.raises(error):
        await brain.get(bucket, "k")
    await settled(brain)
    assert await brain.directory.find(bucket.id, "k") is None


async def test_without_credentials_requests_are_anonymous(brain: Brain, tmp_path: Path) -> None:
    async with Google(tls=serving(brain, tmp_path)) as server:
        server.store["k"] = Stored(b"public")
        bucket = await brain.origin_bucket("gcs", {"bucket": "store", "endpoint": server.url})

        assert await brain.get(bucket, "k") == b"public"
        assert server.wrong == []
    async with S3Origin() as plain:
        bucket = await brain.origin_bucket("s3", plain.config, name="s3")
        with pytest.raises(OriginDenied):
            await brain.objects.open(bucket, "k")
        assert "ambient" not in str(plain.asked[0].headers).lower()
