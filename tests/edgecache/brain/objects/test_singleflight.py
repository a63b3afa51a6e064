"""Singleflight: concurrent requests for uncached rows cost one query."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from common.crypto import encrypt
from edgecache.brain.access.access_keys import AccessKeys
from edgecache.brain.access.platform_keys import PlatformKeys
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.objects.directory_writer import DirectoryWriter
from tests.edgecache.brain.brains import ALICE, Brain, Rows, read, settled, until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin
from tests.edgecache.brain.objects.plain_requests import looking_up, opened, plain_request

CROWD = 1000

Query = Callable[..., Awaitable[Any]]


class Counted:
    """Counts a database's queries; the first one waits for ``gate`` after its read."""

    def __init__(self, database: BrainDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queries = 0
        self.has_read, self.gate = asyncio.Event(), asyncio.Event()
        for name in ("one", "all"):
            monkeypatch.setattr(database, name, partial(self._ask, getattr(database, name)))

    async def _ask(self, query: Query, *args: Any, **options: Any) -> Any:
        self.queries += 1
        is_first = self.queries == 1
        found = await query(*args, **options)
        if is_first:
            self.has_read.set()
            await self.gate.wait()
        return found


@pytest.fixture
def keys(brain: Brain, rows: Rows) -> AccessKeys:
    """Return the brain's access keys, with one key."""
    rows.run(
        "INSERT INTO brain_accesskey (id, organization_id, environment_pk, secret)"
        " VALUES ('ZK1', 1, 11, %s)",
        [encrypt("secret")],
    )
    return AccessKeys(brain.database, brain.coherence, PlatformKeys(["secret"]))


@pytest.fixture
def unannounced(rows: Rows) -> str:
    """Return a bucket that was not announced yet."""
    rows.run(
        "INSERT INTO brain_bucket (organization_id, environment_pk, name, public_name)"
        " VALUES (1, 11, 'docs', 'public')"
    )
    return "docs"


async def test_concurrent_requests_read_the_bucket_once(
    brain: Brain, unannounced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(brain.database, monkeypatch)
    counted.gate.set()
    asking = (brain.directory.bucket(ALICE, unannounced) for _ in range(CROWD))
    found = await asyncio.gather(*asking)
    assert {bucket.name for bucket in found if bucket is not None} == {"docs"}
    assert counted.queries == 1


async def test_concurrent_requests_read_the_access_key_once(
    brain: Brain, keys: AccessKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(brain.database, monkeypatch)
    counted.gate.set()
    found = await asyncio.gather(*(keys.find("ZK1") for _ in range(CROWD)))
    assert counted.queries == 1
    assert {key.secret for key in found if key is not None} == {"secret"}


async def test_a_request_after_a_change_does_not_share_an_earlier_read(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    counted = Counted(brain.database, monkeypatch)
    early = asyncio.create_task(brain.directory.bucket(ALICE, "docs"))
    await counted.has_read.wait()
    await brain.buckets.delete(ALICE, bucket.id)
    assert await brain.directory.bucket(ALICE, "docs") is None
    counted.gate.set()
    assert await early == bucket
    assert await brain.directory.bucket(ALICE, "docs") is None


async def test_a_request_after_a_revocation_does_not_find_the_key(
    brain: Brain, keys: AccessKeys, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(brain.database, monkeypatch)
    early = asyncio.create_task(keys.find("ZK1"))
    await counted.has_read.wait()
    async with brain.coherence.transaction() as change:
        await change.run("DELETE FROM brain_accesskey")
        change.announce("access_key", "ZK1")
    assert await keys.find("ZK1") is None
    counted.gate.set()
    assert await early is not None
    assert await keys.find("ZK1") is None


async def test_a_row_added_during_a_read_is_found(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    counted = Counted(brain.database, monkeypatch)
    early = asyncio.create_task(brain.directory.find(bucket.id, "key"))
    await counted.has_read.wait()
    written = await brain.put(bucket, "key", b"bytes")
    counted.gate.set()
    assert await early == written


async def test_a_cancelled_request_does_not_affect_the_others(
    brain: Brain, unannounced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(brain.database, monkeypatch)
    leaving = asyncio.create_task(brain.directory.bucket(ALICE, unannounced))
    await counted.has_read.wait()
    staying = asyncio.create_task(brain.directory.bucket(ALICE, unannounced))
    await asyncio.sleep(0)
    leaving.cancel()
    counted.gate.set()
    found = await staying
    # It began after the first read did.
    assert (found is not None, counted.queries) == (True, 2)


async def test_concurrent_stale_responses_cause_one_refresh(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    gate = asyncio.Event()

    async def stale(asked: Asked) -> None:
        asked.head(
            "200 OK", "Content-Length: 5", "Cache-Control: max-age=0, stale-while-revalidate=600"
        )
        await asked.say(b"stale")

    async def silent(asked: Asked) -> None:
        await gate.wait()
        await stale(asked)

    looking = looking_up(brain)
    wanted = await plain_request(brain, http_bucket, "k")
    origin.handler = stale
    await read(await opened(looking, wanted))
    await settled(brain)
    origin.handler = silent

    for _ in range(CROWD):
        assert (await opened(looking, wanted)).is_hit
    assert len(looking._refreshes) == 1

    gate.set()
    await asyncio.gather(*looking._refreshes.values())
    await settled(brain)
    await looking.find(wanted)
    assert len(looking._refreshes) == 1
    await looking.stop()
    assert not looking._refreshes


@pytest.mark.parametrize(("lifetime_s", "body"), [(0, b"again"), (600, b"first")])
async def test_a_response_is_shared_with_later_requests_only_while_fresh(
    brain: Brain,
    origin: HttpOrigin,
    http_bucket: BucketInfo,
    monkeypatch: pytest.MonkeyPatch,
    lifetime_s: int,
    body: bytes,
) -> None:
    gate = asyncio.Event()
    commit = DirectoryWriter.commit

    async def held(*args: Any) -> Any:
        await gate.wait()
        return await commit(*args)

    async def answer(asked: Asked) -> None:
        asked.head("200 OK", "Content-Length: 5", f"Cache-Control: max-age={lifetime_s}")
        await asked.say(b"first" if origin.count("/k") == 1 else b"again")

    monkeypatch.setattr(DirectoryWriter, "commit", held)
    origin.handler = answer
    looking = looking_up(brain)
    wanted = await plain_request(brain, http_bucket, "k")
    assert await read(await opened(looking, wanted)) == b"first"
    # Its bytes have arrived but are not committed.
    assert brain.objects.singleflight.is_busy

    assert await read(await opened(looking, wanted)) == body

    gate.set()
    await settled(brain)


async def test_a_request_after_a_revalidation_asks_the_origin_again(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, gate = asyncio.Event(), asyncio.Event()
    refresh = DirectoryWriter.refresh

    async def hold(*args: Any) -> Any:
        held.set()
        await gate.wait()
        return await refresh(*args)

    async def answer(asked: Asked) -> None:
        if origin.count("/k") == 2:
            asked.head("304 Not Modified", "Cache-Control: max-age=0", 'ETag: "v1"')
            return
        is_old = origin.count("/k") == 1
        tag = "v1" if is_old else "v2"
        asked.head("200 OK", "Content-Length: 5", "Cache-Control: max-age=0", f'ETag: "{tag}"')
        await asked.say(b"first" if is_old else b"again")

    monkeypatch.setattr(DirectoryWriter, "refresh", hold)
    origin.handler = answer
    looking = looking_up(brain)
    wanted = await plain_request(brain, http_bucket, "k")
    assert await read(await opened(looking, wanted)) == b"first"
    await settled(brain)
    confirming = asyncio.create_task(opened(looking, wanted))
    await held.wait()

    assert await read(await opened(looking, wanted)) == b"again"

    await until(lambda: len(brain.kept) == 2)
    gate.set()
    # The confirmed version is gone: the response is the current version.
    assert await read(await confirming) == b"again"
    await settled(brain)


async def test_without_announcements_a_crowd_shares_a_read_that_begins_after_it_asked(
    brain: Brain, keys: AccessKeys, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Coherence, "is_current", False)
    counted = Counted(brain.database, monkeypatch)
    early = asyncio.create_task(keys.find("ZK1"))
    await counted.has_read.wait()
    rows.run("UPDATE brain_accesskey SET access = 'read'")
    crowd = [asyncio.create_task(keys.find("ZK1")) for _ in range(CROWD)]
    finds = [asyncio.create_task(brain.directory.find(1, "k")) for _ in range(CROWD)]
    await asyncio.sleep(0)
    counted.gate.set()

    found = await early
    assert found is not None
    assert found.can_write
    assert {key is not None and key.can_write for key in await asyncio.gather(*crowd)} == {False}
    assert set(await asyncio.gather(*finds)) == {None}
    assert counted.queries == 3
