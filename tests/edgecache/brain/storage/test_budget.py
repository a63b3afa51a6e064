"""The disk's budget is shared by organization, and counts parts of uploads."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgecache.brain.errors import StorageFull
from edgecache.brain.fair_share import charge_organization
from edgecache.brain.values import StagedFile
from tests.edgecache.brain.brains import ALICE, MIB, Brain, Rows, running

LIMIT = 12 * MIB


@pytest.fixture
async def small(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain with little disk."""
    async with running(rows.url, tmp_path / "small", limit_bytes=LIMIT) as brain:
        yield brain


async def receive(brain: Brain, size: int = MIB) -> StagedFile:
    """Receive a body."""
    receiver = brain.staging.receive()
    await receiver.write(bytes(size))
    return await receiver.finish()


async def fill(brain: Brain) -> tuple[list[str], StorageFull]:
    """Store parts until there is no room; return them and the error."""
    names: list[str] = []
    while True:
        try:
            names.append(await brain.staging.keep_part(await receive(brain)))
        except StorageFull as full:
            return names, full


async def test_parts_of_one_organization_leave_room_for_another(small: Brain) -> None:
    charge_organization(1)
    names, full = await fill(small)
    assert (len(names), full.pool, full.limit_bytes) == (6, "organization", LIMIT)

    charge_organization(2)
    others, _ = await fill(small)
    assert len(others) >= 2

    charge_organization(1)
    await small.staging.drop_parts(names)
    await small.staging.drop_parts(others)
    assert len((await fill(small))[0]) == len(names)


async def test_a_budget_that_all_have_filled_is_named(small: Brain) -> None:
    small.staging.budget.count_parts(dict.fromkeys(range(12), MIB))
    charge_organization(99)
    with pytest.raises(StorageFull) as caught:
        await receive(small)
    assert caught.value.again().pool == "staging"


async def test_parts_of_other_processes_are_counted(small: Brain, rows: Rows) -> None:
    bucket = await small.bucket()
    rows.run(
        "INSERT INTO brain_upload (id, bucket_id, key, content_type, headers, metadata)"
        " VALUES ('u', %s, 'k', '', '{}', '{}')",
        [bucket.id],
    )
    rows.run(
        "INSERT INTO brain_uploadpart (upload_id, number, file, size, etag, checksums)"
        " VALUES ('u', 1, 'f', %s, '', '{}')",
        [8 * MIB],
    )
    charge_organization(ALICE.organization_id)
    await small.garbage_collector.round()
    with pytest.raises(StorageFull):
        await receive(small)

    rows.run("DELETE FROM brain_uploadpart")
    await small.garbage_collector.round()
    assert await receive(small)
