"""What every store does: bytes are there as they were written, or an error says so."""

import asyncio
import errno
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import StoreMissing, StoreUnavailable
from edgecache.brain.core.values import Span, StagedFile
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.stores.byte_store import ByteStore
from edgecache.brain.stores.reachable_stores import open_store
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect
from tests.ports import free_port

MIB = 2**20
TAG = "0123456789abcdef"


@asynccontextmanager
async def opened(chosen: StoreSettings) -> AsyncIterator[ByteStore]:
    """Open a store."""
    store = open_store(chosen)
    assert store is not None
    yield store
    await store.close()


@pytest.fixture
async def store(chosen: StoreSettings) -> AsyncIterator[ByteStore]:
    """Return a store of each kind."""
    async with opened(chosen) as one:
        yield one


async def read(store: ByteStore, name: str, start: int, length: int) -> bytes:
    """Read a span to its end."""
    return b"".join([piece async for piece in store.read(name, Span(start, length))])


async def names(store: ByteStore) -> set[str]:
    """Return every name of the tag."""
    return {row.name async for page in store.list(TAG) for row in page}


async def test_bytes_are_read_as_they_were_written(store: ByteStore, tmp_path: Path) -> None:
    large = secrets.token_bytes(6 * MIB)
    body = tmp_path / "body"
    body.write_bytes(large)
    await store.put(f"{TAG}/large", body, len(large))
    await store.put(f"{TAG}/small", b"abc", 3)
    await store.put(f"{TAG}/empty", b"", 0)

    assert await read(store, f"{TAG}/large", 0, len(large)) == large
    assert await read(store, f"{TAG}/large", 5 * MIB - 7, MIB) == large[5 * MIB - 7 : 6 * MIB - 7]
    assert await read(store, f"{TAG}/small", 1, 1) == b"b"
    assert await read(store, f"{TAG}/empty", 0, 0) == b""


async def test_a_staged_file_is_moved_where_that_is_possible(
    folder_store: StoreSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(folder_store)
    staged = StagedFile(tmp_path / "staged", manifest_of(b"abc"))
    staged.path.write_bytes(b"abc")
    await store.put(f"{TAG}/moved", staged, 3)
    assert not staged.path.exists()

    move = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if path == staged.path:
            raise OSError(errno.EXDEV, "another file system")
        return move(path, target)

    staged.path.write_bytes(b"abc")
    monkeypatch.setattr(Path, "rename", rename)
    await store.put(f"{TAG}/copied", staged, 3)
    assert [await read(store, f"{TAG}/{name}", 0, 3) for name in ("moved", "copied")] == [
        b"abc"
    ] * 2


async def test_a_file_is_read_to_its_end_although_it_is_deleted(
    folder_store: StoreSettings,
) -> None:
    store = open_store(folder_store)
    data = secrets.token_bytes(3 * MIB)
    await store.put(f"{TAG}/a", data, len(data))
    reading = store.read(f"{TAG}/a", Span(0, len(data)))
    first = await anext(reading)
    await store.delete([f"{TAG}/a"])
    assert first + b"".join([piece async for piece in reading]) == data


async def test_a_listing_has_what_is_below_the_folder(store: ByteStore) -> None:
    for name in (f"{TAG}/1/2/a", f"{TAG}/b", "other/c"):
        await store.put(name, b"x", 1)

    assert await names(store) == {f"{TAG}/1/2/a", f"{TAG}/b"}
    (page,) = [page async for page in store.list("other")]
    assert abs((page[0].modified_at - datetime.now(UTC)).total_seconds()) < 60


async def test_deleting_takes_absent_names(store: ByteStore) -> None:
    await store.put(f"{TAG}/a", b"x", 1)
    await store.put(f"{TAG}/b", b"x", 1)

    await store.delete([f"{TAG}/absent", f"{TAG}/a"])
    await store.delete([])

    assert await names(store) == {f"{TAG}/b"}


async def test_absent_bytes_are_missing(store: ByteStore) -> None:
    with pytest.raises(StoreMissing):
        await read(store, f"{TAG}/absent", 0, 5)


async def test_an_interrupted_multipart_upload_is_aborted(
    s3_store: StoreSettings, bare_cluster: Cluster
) -> None:
    keys = Keys(0, 0, s3_store.access_key, s3_store.secret_key)
    client = connect(keys, bare_cluster.url)
    for key in (f"some/prefix/{TAG}/a", "some/prefix/other/b"):
        client.create_multipart_upload(Bucket="managed", Key=key)
    later = datetime.now(UTC) + timedelta(seconds=5)

    async with opened(s3_store) as store:
        assert await store.abort_unfinished(TAG, datetime.now(UTC) - timedelta(hours=1)) == 0
        assert await store.abort_unfinished(TAG, later) == 1

    left = client.list_multipart_uploads(Bucket="managed")["Uploads"]
    assert [row["Key"] for row in left] == ["some/prefix/other/b"]
    client.close()


async def test_an_unfinished_file_is_deleted(folder_store: StoreSettings) -> None:
    store = open_store(folder_store)
    folder = Path(folder_store.parts.path)
    await store.put(f"{TAG}/a", b"x", 1)
    (folder / f"{TAG}-unfinished" / "left").write_bytes(b"half")

    assert await store.abort_unfinished(TAG, datetime.now(UTC) + timedelta(seconds=5)) == 1
    assert await names(store) == {f"{TAG}/a"}


async def test_a_store_that_does_not_answer_is_away(s3_store: StoreSettings) -> None:
    closed = StoreSettings(
        url=s3_store.url,
        endpoint=f"http://127.0.0.1:{free_port()}",
        access_key="k",
        secret_key="s",
    )
    async with asyncio.timeout(20), opened(closed) as store:
        for work in (
            store.put(f"{TAG}/a", b"x", 1),
            read(store, f"{TAG}/a", 0, 1),
            store.delete([f"{TAG}/a"]),
            names(store),
            store.abort_unfinished(TAG, datetime.now(UTC)),
        ):
            with pytest.raises(StoreUnavailable):
                await work


async def test_wrong_credentials_and_an_absent_bucket_are_no_lost_bytes(
    s3_store: StoreSettings,
) -> None:
    wrong = StoreSettings(
        url=s3_store.url,
        endpoint=s3_store.endpoint,
        access_key=s3_store.access_key,
        secret_key="wrong",
    )
    absent = StoreSettings(
        url="s3://absent",
        endpoint=s3_store.endpoint,
        access_key=s3_store.access_key,
        secret_key=s3_store.secret_key,
    )
    for chosen in (wrong, absent):
        async with opened(chosen) as store:
            with pytest.raises(StoreUnavailable):
                await read(store, f"{TAG}/a", 0, 1)


async def test_a_folder_that_is_not_mounted_is_away(folder_store: StoreSettings) -> None:
    store = open_store(folder_store)
    folder = Path(folder_store.parts.path)
    await asyncio.to_thread(folder.rmdir)

    with pytest.raises(StoreUnavailable):
        await store.put(f"{TAG}/a", b"x", 1)
    with pytest.raises(StoreUnavailable):
        await read(store, f"{TAG}/a", 0, 1)
    assert not await asyncio.to_thread(folder.exists)
