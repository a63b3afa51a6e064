"""One organization's requests to the managed store leave places for those of others."""

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import Overloaded
from edgecache.brain.core.share_key import (
    SHARE_KEY,
    use_share_of_bucket,
    use_share_of_organization,
)
from edgecache.brain.core.values import BucketInfo, Span, StagedFile
from edgecache.brain.stores import folder_store as folders
from edgecache.brain.stores import managed, object_store
from edgecache.brain.stores.folder_store import FolderStore
from edgecache.brain.stores.object_store import ObjectStore, open_object_store
from edgecache.brain.stores.stored_blobs import SMALL_BYTES
from tests.edgecache.brain.brains import ALICE, CHARLIE, Rows, running, until
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin

GREEDY: Final = 1
MODEST: Final = 2
MANY: Final = object_store.CONCURRENT_WRITES + 20


@dataclass
class SlowStore(HttpOrigin):
    """An S3 store that holds requests for names that begin with ``held`` at a gate."""

    gate: Gate = field(default_factory=Gate)

    async def _answer(self, asked: Asked) -> None:
        if asked.path.startswith("/store/held"):
            await self.gate.wait()
        if asked.method == "PUT":
            await asked.answer(b"", 'ETag: "e"')
            return
        span = asked.headers["range"].partition("=")[2]
        fields = [f"Content-Range: bytes {span}/10", 'ETag: "e"']
        fields.append("Last-Modified: Fri, 02 Jan 2026 03:04:05 GMT")
        await asked.answer(b"bytes", *fields, status="206 Partial Content")


@pytest.fixture
async def server() -> AsyncIterator[SlowStore]:
    """Return a store whose gate is opened at the end."""
    async with SlowStore() as one:
        yield one
        one.gate.opened.set()


def opened(server: SlowStore) -> ObjectStore:
    """Return a driver of that store."""
    return open_object_store(
        StoreSettings(url="s3://store", endpoint=server.url, access_key="key", secret_key="secret")
    )


@pytest.fixture
async def store(server: SlowStore) -> AsyncIterator[ObjectStore]:
    """Return the driver of that store."""
    one = opened(server)
    yield one
    await one.close()


async def put(store: ObjectStore, name: str) -> None:
    """Write a few bytes."""
    await store.put(name, b"bytes", 5)


async def get(store: ObjectStore, name: str) -> bytes:
    """Read them."""
    return b"".join([piece async for piece in store.read(name, Span(0, 5))])


async def charged(organization_id: int, work: Coroutine[Any, Any, Any]) -> Any:
    """Do something for an organization."""
    use_share_of_organization(organization_id)
    return await work


async def test_slow_writes_leave_places_for_another_organization(
    server: SlowStore, store: ObjectStore
) -> None:
    working = [asyncio.create_task(charged(GREEDY, put(store, f"held-{n}"))) for n in range(MANY)]
    await until(lambda: len(server.asked) == object_store.WRITES_OF_ONE)

    async with asyncio.timeout(20):
        await charged(MODEST, put(store, "quick"))
        assert await charged(MODEST, get(store, "quick")) == b"bytes"

    assert not any(task.done() for task in working)
    server.gate.opened.set()
    await asyncio.gather(*working)
    assert server.gate.came.is_set()


@pytest.mark.parametrize(
    ("owners", "limit"),
    [([GREEDY] * MANY, object_store.WRITES_OF_ONE), (range(MANY), object_store.CONCURRENT_WRITES)],
    ids=["one organization", "all organizations"],
)
async def test_writes_over_the_limit_are_refused_after_a_while(
    server: SlowStore,
    store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
    owners: Sequence[int],
    limit: int,
) -> None:
    monkeypatch.setattr(object_store, "WAIT_S", 0.01)
    working = [
        asyncio.create_task(charged(owner, put(store, f"held-{n}")))
        for n, owner in enumerate(owners)
    ]
    await until(lambda: sum(task.done() for task in working) == MANY - limit)
    server.gate.opened.set()
    ends = await asyncio.gather(*working, return_exceptions=True)

    assert [type(end) for end in ends if end is not None] == [Overloaded] * (MANY - limit)


class SlowFolder(FolderStore):
    """A folder that holds bodies whose names begin with ``held`` at a gate."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.gate = threading.Event()

    def _put(self, name: str, body: StagedFile | Path | bytes) -> None:
        if name.startswith("held"):
            self.gate.wait(20)
        super()._put(name, body)


async def test_large_bodies_in_a_folder_leave_threads_for_another_organization(
    tmp_path: Path,
) -> None:
    store = SlowFolder(tmp_path)
    many = folders.THREADS + 5
    working = [
        asyncio.create_task(charged(GREEDY, store.put(f"held-{n}", b"bytes", 5)))
        for n in range(many)
    ]
    await asyncio.sleep(0)

    async def get_quick() -> bytes:
        return b"".join([piece async for piece in store.read("quick", Span(0, 5))])

    async with asyncio.timeout(10):
        await charged(MODEST, store.put("quick", b"bytes", 5))
        assert await charged(MODEST, get_quick()) == b"bytes"
    assert not any(task.done() for task in working)
    store.gate.set()
    await asyncio.gather(*working)


async def test_another_organization_reads_while_one_fills_the_restores(
    rows: Rows, tmp_path: Path, s3_store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    async with running(rows.url, tmp_path / "brain", stores=[s3_store]) as brain:
        take = brain.data_directory.take

        async def held(body: AsyncIterator[bytes]) -> StagedFile:
            if SHARE_KEY.get()[0] == CHARLIE.organization_id:
                await gate.wait()
            return await take(body)

        async def read_all(bucket: BucketInfo, count: int) -> None:
            use_share_of_bucket(bucket)
            bodies = [secrets.token_bytes(2 * SMALL_BYTES) for _ in range(count)]
            for n, body in enumerate(bodies):
                await brain.put(bucket, f"{n}", body)
            for path in (brain.data_directory.root / "blobs").glob("*/*"):
                path.unlink()
            brain.kept.clear()
            for n, body in enumerate(bodies):
                assert await brain.get(bucket, f"{n}") == body

        monkeypatch.setattr(brain.data_directory, "take", held)
        await read_all(await brain.bucket(tenant=CHARLIE), managed.CONCURRENT_RESTORES)
        other = await brain.bucket(tenant=ALICE)
        await read_all(other, 1)
        assert not brain.kept

        gate.set()
        await until(lambda: len(brain.kept) == managed.CONCURRENT_RESTORES)
        await brain.get(other, "0")
        await until(lambda: len(brain.kept) == managed.CONCURRENT_RESTORES + 1)
