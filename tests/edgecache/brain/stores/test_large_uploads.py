"""Objects made of parts, larger than this brain's disk may take: they go to the store as they come.

The limits of the others are named in the refusal.
"""

import hashlib
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import PartMissing, PreconditionFailed
from edgecache.brain.core.share_key import use_share_of_bucket
from edgecache.brain.core.values import BucketInfo, Conditions
from edgecache.brain.stores.upload_parts import StoredPart
from tests.edgecache.brain.brains import MIB, PLAIN, Brain, Rows, running
from tests.edgecache.brain.s3.multipart.support import Upload
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect

pytestmark = pytest.mark.slow

STAGING = 32 * MIB
PART = 7 * MIB
COUNT = 3


@pytest.fixture
async def small(rows: Rows, tmp_path: Path, chosen: StoreSettings) -> AsyncIterator[Brain]:
    """Return a brain on a store of each kind, with room for a part on its own disk."""
    async with running(rows.url, tmp_path / "brain", stores=[chosen], limit_bytes=STAGING) as brain:
        yield brain


async def upload(brain: Brain, bucket: BucketInfo) -> tuple[bytes, list[StoredPart]]:
    """Upload parts; return the object's bytes, and where the parts are."""
    use_share_of_bucket(bucket)
    whole, parts = b"", []
    for _ in range(COUNT):
        data = secrets.token_bytes(PART)
        receiver = brain.data_directory.receive()
        await receiver.write(data)
        staged = await receiver.finish()
        async with brain.upload_parts.storing(bucket.tenant, staged) as kept:
            parts.append(StoredPart(kept, PART, staged.manifest.md5))
        whole += data
    return whole, parts


async def test_a_large_object_goes_to_the_store_without_this_disk(small: Brain, rows: Rows) -> None:
    bucket = await small.bucket()
    whole, parts = await upload(small, bucket)
    assert small.upload_parts.is_streamed(bucket, len(whole))
    assert len(whole) <= small.upload_parts.max_object_bytes(bucket)

    pieces = small.upload_parts.read(parts)
    found = await small.objects.put_pieces(bucket, "k", pieces, len(whole), PLAIN)

    assert (found.size, found.sha256) == (len(whole), hashlib.sha256(whole).digest())
    assert rows.count("storedblob") == 1
    assert small.data_directory.received_bytes == 0
    assert await small.get(bucket, "k") == whole


async def test_an_altered_part_writes_nothing(small: Brain, rows: Rows) -> None:
    bucket = await small.bucket()
    whole, parts = await upload(small, bucket)
    parts[2] = parts[2]._replace(md5=bytes(16))

    with pytest.raises(PartMissing) as caught:
        await small.objects.put_pieces(
            bucket, "k", small.upload_parts.read(parts), len(whole), PLAIN
        )

    assert caught.value.index == 2
    assert rows.count("storedobject") == 0
    assert rows.count("storedblob") == 0


async def test_a_condition_that_does_not_hold_leaves_no_bytes_in_the_store(
    small: Brain, rows: Rows
) -> None:
    bucket = await small.bucket()
    whole, parts = await upload(small, bucket)
    await small.put(bucket, "k", b"first")

    with pytest.raises(PreconditionFailed):
        await small.objects.put_pieces(
            bucket,
            "k",
            small.upload_parts.read(parts),
            len(whole),
            PLAIN,
            conditions=Conditions(if_none_match="*"),
        )

    assert await small.get(bucket, "k") == b"first"
    await small.managed._tasks.finish()
    (known,) = small.stores.all()
    folder = f"{known.tag}/{bucket.tenant.organization_id}/{bucket.tenant.environment_pk}/objects"
    names = [row.name async for page in known.store.list(folder) for row in page]
    assert names == [name for (name,) in rows.all("SELECT name FROM brain_storedblob")]


def test_an_object_that_can_never_be_joined_is_refused_with_the_limit(
    start: Callable[..., Cluster],
) -> None:
    # A bucket with an origin: of others the parts go to the store as they are joined.
    cluster = start(variables={"ZBRAIN_STAGING_MIB": "48"})
    keys = cluster.tenant()
    described = {
        "name": "away",
        "kind": "s3",
        "config": {"bucket": "away", "region": "eu", "endpoint": "http://127.0.0.1:1"},
        "secret": {"access_key_id": "key", "secret_access_key": "secret"},
    }
    origin = cluster.call("POST", f"/v1/origins?{keys.scope}", described)
    wanted = {"name": "docs", "origin_id": origin["id"]}
    cluster.call("POST", f"/v1/buckets?{keys.scope}", wanted)
    client = connect(keys, cluster.url)
    begun = Upload(client)
    for number in (1, 2):
        begun.add(number, bytes(5 * MIB))
    listed = "".join(
        f"<Part><PartNumber>{row['PartNumber']}</PartNumber><ETag>{row['ETag']}</ETag></Part>"
        for row in begun.parts
    )

    answer = Signer(keys, cluster.url).send(
        "POST",
        f"/docs/big?uploadId={begun.id}",
        f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode(),
    )

    largest = 48 * MIB // 6
    assert (answer.status, answer.code) == (400, "EntityTooLarge")
    assert (answer.text("ProposedSize"), answer.text("MaxSizeAllowed")) == (
        str(10 * MIB),
        str(largest),
    )
    assert f"{largest:,}" in answer.text("Message")
    assert "ZBRAIN_STAGING_MIB" in answer.text("Message")
    client.close()
