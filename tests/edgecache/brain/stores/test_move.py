"""``movestore``: everything moves while it is read and written, and nothing is lost."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management.base import CommandError

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import StoreUnavailable
from edgecache.brain.core.values import Span
from edgecache.brain.stores import relocation, stored_blobs
from edgecache.brain.stores.move import Move, MoveProgress, Remainder
from edgecache.brain.stores.relocation import CannotMove, RelocationRequest, RelocationResult
from tests import commands
from tests.edgecache.brain.brains import ALICE, CHARLIE, Brain, Rows, read, running
from tests.edgecache.brain.s3.multipart.support import add_part, begin, parts_of
from tests.edgecache.brain.stores.test_managed import forget_copies
from tests.edgecache.cluster import until
from tests.edgecache.conftest import ROOT
from tests.edgecache.databases import own_files

pytestmark = pytest.mark.slow

FILES = StoreSettings()


def request(**changes: Any) -> RelocationRequest:
    """Return what an operator asks for."""
    return replace(
        RelocationRequest(at_once=4, wait_s=20.0, is_dry=False, on_progress=lambda _progress: None),
        **changes,
    )


async def move(rows: Rows, root: Path, *stores: StoreSettings, **changes: Any) -> RelocationResult:
    """Move to the last of the stores, as the command does."""
    chosen = replace(settings.BRAIN, database_url=rows.url, data_dir=root, stores=stores)
    return await relocation.relocate(chosen, request(**changes))


@asynccontextmanager
async def filled(rows: Rows, root: Path, *stores: StoreSettings) -> AsyncIterator[Brain]:
    """Yield a brain on the first of the stores, with objects of two environments and an upload."""
    async with running(rows.url, root, stores=stores) as brain:
        for tenant in (ALICE, CHARLIE):
            bucket = await brain.bucket("docs", tenant)
            for n in range(30):
                await brain.put(bucket, f"k{n}", b"%d" % (n % 20) * 1000)
        upload = await begin(brain, bucket)
        await add_part(brain, bucket, upload, 1, b"a" * 100)
        yield brain


async def check(brain: Brain, rows: Rows) -> None:
    """Check every object and the part against what ``filled`` wrote."""
    forget_copies(brain)
    for (bucket_id,) in rows.all("SELECT id FROM brain_bucket"):
        bucket = await brain.directory.bucket_by_id(bucket_id)
        for n in range(30):
            assert await brain.get(bucket, f"k{n}") == b"%d" % (n % 20) * 1000
    (upload,) = [name for (name,) in rows.all("SELECT id FROM brain_upload")]
    staged = await brain.upload_parts.join(await parts_of(brain, upload))
    assert staged.manifest.size == 100
    await brain.data_directory.discard(staged)


def places(rows: Rows) -> set[tuple[str, int]]:
    """Return how many blobs and parts each store has."""
    return set(
        rows.all(
            "SELECT s.name, count(*) FROM (SELECT store_id FROM brain_storedblob"
            " UNION ALL SELECT store_id FROM brain_uploadpart) l JOIN brain_store s"
            " ON s.id = l.store_id GROUP BY s.name"
        )
    )


async def test_objects_move_from_the_data_directory_to_a_store_and_back(
    rows: Rows, tmp_path: Path, chosen: StoreSettings
) -> None:
    root = tmp_path / "brain"
    async with filled(rows, root, FILES, chosen) as brain:
        dry = await move(rows, root, FILES, chosen, is_dry=True)
        assert (dry.before.objects, dry.before.parts, dry.progress.moved) == (40, 1, 0)
        assert places(rows) == {(FILES.name, 41)}

        there = await move(rows, root, FILES, chosen)
        assert (there.left.objects, there.left.parts, there.progress.failed) == (0, 0, 0)
        assert (there.progress.moved, there.brains) == (41, [str(brain.id)])
        assert places(rows) == {(chosen.name, 41)}
        await check(brain, rows)
        # The old bytes stay for a day.
        await brain.garbage_collector.round()
        assert len(stored_files(root / "objects")) == 41
        await collect(brain, rows)
        assert stored_files(root / "objects") == set()
        await check(brain, rows)

        back = await move(rows, root, chosen, FILES)
        assert (back.left.objects, back.left.parts, back.progress.moved) == (0, 0, 41)
        assert places(rows) == {(FILES.name, 41)}
        await check(brain, rows)
        await collect(brain, rows)
        await check(brain, rows)


async def collect(brain: Brain, rows: Rows) -> None:
    """Delete the old bytes, as a day later."""
    await brain.garbage_collector.round()
    assert rows.count("discardedbytes") > 0
    rows.run("UPDATE brain_discardedbytes SET due_at = now()")
    await brain.garbage_collector.round()
    assert rows.count("discardedbytes") == 0


async def test_small_objects_need_no_move(
    rows: Rows, tmp_path: Path, folder_store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_blobs, "SMALL_BYTES", 16_384)
    root = tmp_path / "brain"
    async with filled(rows, root, FILES, folder_store) as brain:
        result = await move(rows, root, FILES, folder_store)
        assert (result.before.objects, result.before.parts, result.progress.moved) == (0, 1, 1)
        await check(brain, rows)


async def test_a_move_between_stores_goes_on_while_objects_are_written_and_read(
    rows: Rows, tmp_path: Path, s3_store: StoreSettings, folder_store: StoreSettings
) -> None:
    root = tmp_path / "brain"
    stores = (folder_store, s3_store)
    async with filled(rows, root, *stores) as brain:
        bucket = await brain.directory.bucket_by_id(rows.value("SELECT min(id) FROM brain_bucket"))
        is_over = asyncio.Event()
        written = 0

        async def keep_writing() -> None:
            nonlocal written
            while not is_over.is_set():
                await brain.put(bucket, f"new{written}", b"%d" % written)
                await brain.put(bucket, "same", b"%d" % written)
                await brain.objects.delete(bucket, [f"k{written % 10}"])
                await brain.put(bucket, f"k{written % 10}", b"%d" % (written % 10) * 1000)
                written += 1

        async def keep_reading() -> None:
            while not is_over.is_set():
                forget_copies(brain)
                assert await brain.get(bucket, "k15") == b"15" * 1000

        work = [asyncio.create_task(keep_writing()), asyncio.create_task(keep_reading())]
        result = await move(rows, root, *stores)
        is_over.set()
        await asyncio.gather(*work)

        assert (result.left.objects, result.left.parts, result.progress.failed) == (0, 0, 0)
        assert {name for name, _ in places(rows)} == {s3_store.name}
        rows.run("UPDATE brain_discardedbytes SET due_at = now()")
        await brain.garbage_collector.round()
        await check(brain, rows)
        for n in range(written):
            assert await brain.get(bucket, f"new{n}") == b"%d" % n


async def test_an_interrupted_move_is_continued(
    rows: Rows, tmp_path: Path, folder_store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "brain"
    commit, commits = Move._commit, 0

    async def breaks_off(self: Move, *args: Any) -> bool:
        nonlocal commits
        commits += 1
        if commits > 10:
            raise StoreUnavailable
        return await commit(self, *args)

    async with filled(rows, root, FILES, folder_store) as brain:
        with monkeypatch.context() as patch:
            patch.setattr(Move, "_commit", breaks_off)
            broken = await move(rows, root, FILES, folder_store, at_once=1)
        assert broken.stopped
        assert broken.left.objects == 30
        await check(brain, rows)

        assert (await move(rows, root, FILES, folder_store)).left.objects == 0
        await check(brain, rows)


async def test_a_move_that_is_killed_is_continued_and_leaves_nothing_behind(
    rows: Rows, tmp_path: Path, folder_store: StoreSettings
) -> None:
    root = tmp_path / "brain"
    environment = os.environ | {
        "DATABASE_URL": rows.url,
        "ZDATA_DIR": str(tmp_path),
        "ZBRAIN_STORE_NEXT_URL": folder_store.url,
    }
    async with filled(rows, root, FILES, folder_store) as brain:
        bucket = await brain.directory.bucket_by_id(rows.value("SELECT min(id) FROM brain_bucket"))
        last = (await brain.objects.open(bucket, "k5")).version.sha256
        mounted = Path(folder_store.url.removeprefix("file://"))
        with psycopg.connect(rows.url) as connection:
            # Its bytes are in the new store when the move is killed, its row is not.
            connection.execute("SELECT FROM brain_storedblob WHERE blob_id = %s FOR UPDATE", [last])
            running = await asyncio.create_subprocess_exec(
                sys.executable, "manage.py", "movestore", cwd=ROOT, env=environment
            )
            try:
                await asyncio.to_thread(until, lambda: is_half_done(rows, mounted), seconds=60)
            finally:
                running.kill()
                await running.wait()
        await check(brain, rows)

        result = await move(rows, root, FILES, folder_store)

        assert (result.left.objects, result.left.parts, result.progress.failed) == (0, 0, 0)
        assert 0 < result.progress.moved < 41
        await check(brain, rows)
        await brain.stores.refresh()
        for known in brain.stores.all():
            await brain.garbage_collector.stores.sweep(known, after_s=-60)
        assert stored_files(mounted) == places_of(rows)
        await check(brain, rows)


def is_half_done(rows: Rows, folder: Path) -> bool:
    """Return True if much has moved, and the store has bytes without a row."""
    moved = places_of(rows)
    return len(moved) > 20 and len(stored_files(folder)) > len(moved)


def stored_files(folder: Path) -> set[str]:
    """Return the names of the complete files in a store."""
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in files if "unfinished" not in name}


def places_of(rows: Rows) -> set[str]:
    """Return the names of all that is not in the data directory."""
    found = rows.all(
        "SELECT p.name FROM (SELECT store_id, name FROM brain_storedblob UNION"
        " SELECT store_id, file FROM brain_uploadpart) p JOIN brain_store s ON s.id = p.store_id"
        " WHERE s.name <> 'file://'"
    )
    return {name for (name,) in found}


async def test_a_move_waits_for_every_brain(
    rows: Rows, tmp_path: Path, folder_store: StoreSettings
) -> None:
    root = tmp_path / "brain"
    async with filled(rows, root, FILES, folder_store) as brain:
        async with running(rows.url, tmp_path / "other"):
            # The other one does not know the new store.
            with pytest.raises(CannotMove) as caught:
                await move(rows, root, FILES, folder_store)
            assert caught.value.code == "brains_not_ready"
        assert places(rows) == {(FILES.name, 41)}
        with brain.stores.open_write():
            # A write to the old store is not finished.
            unconfirmed = await move(rows, root, FILES, folder_store, wait_s=0.5)
        assert unconfirmed.stopped
        assert places(rows) == {(FILES.name, 41)}
        assert (await move(rows, root, FILES, folder_store)).left.objects == 0


async def test_altered_and_lost_bytes_stay_where_they_are_and_are_reported(
    rows: Rows, tmp_path: Path, folder_store: StoreSettings
) -> None:
    root = tmp_path / "brain"
    async with filled(rows, root, FILES, folder_store) as brain:
        bucket = await brain.directory.bucket_by_id(rows.value("SELECT min(id) FROM brain_bucket"))
        altered, lost = [(await brain.objects.open(bucket, key)).version for key in ("k1", "k2")]
        for file in own_files(rows.url, root, altered.sha256):
            file.write_bytes(b"2" * 1000)
        for file in own_files(rows.url, root, lost.sha256):
            file.unlink()

        result = await move(rows, root, FILES, folder_store)

        assert (result.left.objects, result.progress.failed) == (4, 4)
        assert "altered" in " ".join(result.progress.reasons)
        assert await read(await brain.objects.open(bucket, "k3"), Span(0, 3)) == b"333"


def test_the_command_reports_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = Remainder(2, 1, 30)
    result = RelocationResult(
        "s3://new", left, left, MoveProgress(failed=2, reasons=["ab: altered"])
    )

    async def relocate(*_args: object) -> RelocationResult:
        return result

    monkeypatch.setattr("edgecache.brain.management.commands.movestore.relocate", relocate)
    assert "2 objects and 1 parts" in commands.run("movestore", "--dry-run")
    with pytest.raises(CommandError) as caught:
        commands.run("movestore")
    assert caught.value.returncode == 4
    assert "same command again" in str(caught.value)


def test_the_command_refuses_before_it_changes_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    async def relocate(*_args: object) -> RelocationResult:
        raise CannotMove("brains_not_ready", "One brain is not ready.")

    monkeypatch.setattr("edgecache.brain.management.commands.movestore.relocate", relocate)
    sentence, error = commands.refused("movestore")
    assert error["code"] == "brains_not_ready"
    assert sentence == "One brain is not ready."
