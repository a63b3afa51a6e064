"""Buckets with an origin at Google Cloud Storage, by its S3 endpoint."""

import base64
import gzip
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import OriginDenied
from edgecache.brain.core.values import BucketInfo, Conditions, WrittenFields
from edgecache.brain.origins.s3 import google_location, location_of
from tests.edgecache.brain import certificates
from tests.edgecache.brain.brains import Brain, Rows, running
from tests.edgecache.brain.s3_origin import GoogleOrigin, S3Origin, Stored

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


@pytest.fixture
async def origin(brain: Brain, tmp_path: Path) -> AsyncIterator[GoogleOrigin]:
    """Return an origin."""
    async with GoogleOrigin(tls=serving(tmp_path)) as server:
        yield server
    assert server.wrong == []


@pytest.fixture
async def bucket(brain: Brain, origin: GoogleOrigin) -> BucketInfo:
    """Return a bucket with that origin."""
    return await brain.origin_bucket("gcs", origin.config, origin.secret, prefix="home/")


def serving(tmp_path: Path) -> ssl.SSLContext:
    """Return a server TLS context of the authority that the brain trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    return context


async def test_objects_are_written_read_listed_and_deleted(
    brain: Brain, origin: GoogleOrigin, bucket: BucketInfo
) -> None:
    fields = WrittenFields("text/plain", {"cache-control": "max-age=9"}, {"owner": "alice"})

    written = await brain.put(bucket, "dir/\u00fc k", b"hello", fields)
    stored = origin.store["home/dir/\u00fc k"]
    assert (stored.data, stored.etag) == (b"hello", written.etag)
    assert stored.headers == {
        "content-type": "text/plain",
        "cache-control": "max-age=9",
        "x-amz-meta-owner": "alice",
    }

    origin.store["home/there"] = Stored(b"x" * 700_000, {"Content-Type": "a/b"})
    assert await brain.get(bucket, "there") == b"x" * 700_000

    listing = await brain.objects.list(bucket, delimiter="/")
    assert ([row.key for row in listing.objects], listing.prefixes) == (["there"], ("dir/",))

    await brain.objects.delete(bucket, ["there", "dir/\u00fc k", "never"])
    assert origin.store == {}


async def test_packed_bytes_come_as_they_are_stored(
    brain: Brain, origin: GoogleOrigin, bucket: BucketInfo
) -> None:
    packed = gzip.compress(b"hello")
    origin.store["home/k"] = Stored(packed, {"content-encoding": "gzip"})

    assert (await brain.objects.head(bucket, "k")).size == len(packed)
    assert await brain.get(bucket, "k") == packed


@pytest.mark.parametrize("conditions", [Conditions(if_none_match="*"), Conditions(if_match="*")])
async def test_a_write_with_a_condition_is_refused(
    brain: Brain, origin: GoogleOrigin, bucket: BucketInfo, conditions: Conditions
) -> None:
    origin.store["home/k"] = Stored(b"there")

    with pytest.raises(S3Error, match="NotImplemented"):
        await brain.put(bucket, "k", b"x", conditions=conditions)
    assert origin.store["home/k"].data == b"there"
    assert origin.asked == []


async def test_google_s_own_address_is_recognized_in_an_s3_origin() -> None:
    config = {"bucket": "b", "region": "auto", "endpoint": "https://storage.googleapis.com"}

    assert location_of(config, "").is_google
    assert google_location({"bucket": "b"}, "") == location_of(config, "")


async def test_without_credentials_requests_are_anonymous(brain: Brain) -> None:
    async with S3Origin() as plain:
        for kind, config in (
            ("s3", plain.config),
            ("gcs", {"bucket": "store", "endpoint": plain.url}),
        ):
            bucket = await brain.origin_bucket(kind, config, name=kind)
            with pytest.raises(OriginDenied):
                await brain.objects.open(bucket, "k")
        assert len(plain.asked) == 2
        for asked in plain.asked:
            assert "authorization" not in asked.headers
            assert "ambient" not in str(asked.headers).lower()
