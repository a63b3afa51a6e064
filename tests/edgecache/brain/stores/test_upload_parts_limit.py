"""Parts of unfinished uploads in a store are limited for each organization."""

from pathlib import Path

import pytest

from edgecache.brain.aws.errors import from_brain_error
from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import TooManyParts
from edgecache.brain.core.share_key import use_share_of_bucket
from edgecache.brain.core.values import BucketInfo, EnvironmentKey
from edgecache.brain.objects import upload_rows
from edgecache.brain.stores import upload_parts_limit as parts_limit
from tests.edgecache.brain.brains import ALICE, CHARLIE, MIB, Brain, Rows, running
from tests.edgecache.brain.s3.multipart.support import add_part
from tests.edgecache.brain.s3.multipart.support import begin as begin_in

LIMIT = 4 * MIB


@pytest.fixture
def store(tmp_path: Path) -> StoreSettings:
    """Return a store in a folder."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    return StoreSettings(url=f"file://{folder}")


async def begin(brain: Brain, tenant: EnvironmentKey) -> tuple[BucketInfo, str]:
    """Begin an upload in a new bucket; return the bucket and the upload's id."""
    bucket = await brain.bucket(tenant=tenant)
    use_share_of_bucket(bucket)
    return bucket, await begin_in(brain, bucket)


async def add(brain: Brain, upload: tuple[BucketInfo, str], number: int) -> None:
    """Upload a part."""
    await add_part(brain, *upload, number, bytes(MIB))


async def test_an_organization_s_unfinished_uploads_are_limited(
    rows: Rows, tmp_path: Path, store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_limit, "LIMIT_BYTES", LIMIT)
    async with running(rows.url, tmp_path / "brain", stores=[store]) as brain:
        greedy, modest = await begin(brain, CHARLIE), await begin(brain, ALICE)
        for number in range(1, 5):
            await add(brain, greedy, number)
        with pytest.raises(TooManyParts) as caught:
            await add(brain, greedy, 5)
        with pytest.raises(TooManyParts):
            await brain.upload_parts.check_room(CHARLIE, 1)
        error = from_brain_error(caught.value.copy())
        assert (error.status, error.code) == (403, "QuotaExceeded")
        assert f"{LIMIT:,}" in error.message
        assert rows.count("uploadpart") == 4

        await add(brain, modest, 1)
        await brain.upload_parts.check_room(ALICE, 3 * MIB)

        # What is aborted makes room.
        monkeypatch.setattr(parts_limit, "FRESH_BEFORE_REFUSAL_S", 0)
        await upload_rows.remove(brain.database, greedy[1])
        await brain.upload_parts.check_room(CHARLIE, LIMIT)


async def test_parts_in_the_data_directory_count_in_its_budget_alone(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_limit, "LIMIT_BYTES", LIMIT)
    async with running(rows.url, tmp_path / "brain") as brain:
        upload = await begin(brain, ALICE)
        for number in range(1, 7):
            await add(brain, upload, number)
        assert rows.count("uploadpart") == 6
