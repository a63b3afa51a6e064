"""Buckets with a Google or Azure origin, which is reached only through the brain's proxy."""

import base64
import hashlib
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest

from edgecache.brain.core.errors import (
    KeyRefused,
    OriginDenied,
    OriginFailed,
    OriginMissing,
    OriginTimeout,
    PreconditionFailed,
)
from edgecache.brain.core.values import BucketInfo, Conditions, WrittenFields
from tests.edgecache.brain import certificates
from tests.edgecache.brain.brains import Brain, Rows, running, settled
from tests.edgecache.brain.cloud_origins import ACCOUNT_KEY, Azure, Google, service_account
from tests.edgecache.brain.http_origin import Asked
from tests.edgecache.brain.s3_origin import S3Origin, Stored

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
    account, public = service_account()
    # The key file also contains these URLs, which must not be used.
    account |= {"token_uri": "https://127.0.0.1:1/token", "gcs_base_url": "https://127.0.0.1:1"}
    server = Google(tls=serving(brain, tmp_path))
    server.public = public
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
    fields = WrittenFields("text/plain", {"cache-control": "max-age=9"})

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


async def test_a_key_that_the_driver_would_change_is_refused(
    brain: Brain, origin: tuple[S3Origin, BucketInfo]
) -> None:
    server, bucket = origin

    for key in ("a//b", "../k", "a/", "/a", ".", "a/./b", "x\x01y"):
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
