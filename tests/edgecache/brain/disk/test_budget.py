"""The disk's budget is shared by organization, and counts parts of uploads."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import StorageFull
from edgecache.brain.core.share_key import use_share_of_bucket, use_share_of_organization
from edgecache.brain.core.values import StagedFile
from edgecache.brain.stores.byte_store import Body
from edgecache.brain.stores.upload_parts import PartFile
from tests.edgecache.brain.brains import ALICE, MIB, Brain, Rows, running, until
from tests.edgecache.brain.http_origin import Gate

LIMIT = 40 * MIB


@pytest.fixture
async def small(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain with little disk."""
    async with running(rows.url, tmp_path / "small", limit_bytes=LIMIT) as brain:
        yield brain


async def receive(brain: Brain, size: int = MIB) -> StagedFile:
    """Receive a body."""
    receiver = brain.data_directory.receive()
    await receiver.write(bytes(size))
    return await receiver.finish()


async def fill(brain: Brain) -> tuple[list[PartFile], StorageFull]:
    """Store parts until there is no room; return them and the error."""
    parts: list[PartFile] = []
    while True:
        try:
            async with brain.upload_parts.storing(ALICE, await receive(brain)) as part:
                parts.append(part)
        except StorageFull as full:
            return parts, full


async def test_parts_of_one_organization_leave_room_for_another(small: Brain) -> None:
    use_share_of_organization(1)
    names, full = await fill(small)
    assert (len(names), full.pool, full.limit_bytes) == (10, "organization", LIMIT)

    use_share_of_organization(2)
    others, _ = await fill(small)
    assert len(others) >= 2

    use_share_of_organization(1)
    for part in (*names, *others):
        await small.upload_parts.drop(part)
    assert len((await fill(small))[0]) == len(names)


async def test_a_budget_that_all_have_filled_is_named(small: Brain) -> None:
    small.data_directory.budget.count_parts(dict.fromkeys(range(40), MIB))
    use_share_of_organization(99)
    with pytest.raises(StorageFull) as caught:
        await receive(small)
    assert caught.value.copy().pool == "staging"


@pytest.mark.parametrize("kind", ["object", "part"])
async def test_a_body_counts_until_the_managed_store_has_it(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "mounted").mkdir()
    settings = StoreSettings(url=f"file://{tmp_path}/mounted")
    async with running(rows.url, tmp_path / "b", limit_bytes=LIMIT, stores=[settings]) as brain:
        gate, active = Gate(), brain.stores.active
        assert active is not None
        store, put = active.store, active.store.put

        async def slow(name: str, data: Body, size: int) -> None:
            await gate.wait()
            await put(name, data, size)

        monkeypatch.setattr(store, "put", slow)
        bucket = await brain.bucket()
        use_share_of_bucket(bucket)

        async def write() -> None:
            if kind == "object":
                await brain.put(bucket, "k", bytes(4 * MIB))
                return
            staged = await receive(brain, 4 * MIB)
            async with brain.upload_parts.storing(bucket.tenant, staged):
                pass

        writing = asyncio.create_task(write())
        await gate.came.wait()
        assert brain.data_directory.used_bytes == 4 * MIB
        with pytest.raises(StorageFull):
            await receive(brain, 9 * MIB)

        gate.opened.set()
        await writing
        await until(lambda: brain.data_directory.used_bytes == 0)
        assert await receive(brain, 9 * MIB)


async def test_a_body_that_is_removed_counts_no_more(small: Brain) -> None:
    use_share_of_organization(1)
    for _ in range(20):
        staged = await receive(small, 4 * MIB)
        assert small.data_directory.used_bytes == 4 * MIB
        await small.data_directory.discard(staged)
        assert small.data_directory.used_bytes == 0


async def test_parts_of_other_brains_are_counted(small: Brain, rows: Rows) -> None:
    bucket = await small.bucket()
    rows.run(
        "INSERT INTO brain_upload (id, bucket_id, key, content_type, headers, metadata)"
        " VALUES ('u', %s, 'k', '', '{}', '{}')",
        [bucket.id],
    )
    rows.run(
        "INSERT INTO brain_uploadpart (upload_id, number, store_id, file, size, etag, checksums)"
        " SELECT 'u', 1, id, 'f', %s, '', '{}' FROM brain_store",
        [32 * MIB],
    )
    use_share_of_organization(ALICE.organization_id)
    await small.garbage_collector.round()
    with pytest.raises(StorageFull):
        await receive(small)

    rows.run("DELETE FROM brain_uploadpart")
    await small.garbage_collector.round()
    assert await receive(small)
