"""A multipart upload ends once: completed or aborted, whatever is requested concurrently."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from common.ids import uuid7
from edgecache.brain.core.errors import (
    OriginMissing,
    PreconditionFailed,
    UploadBusy,
    UploadMissing,
)
from edgecache.brain.core.values import BucketInfo, Conditions, ObjectVersion
from edgecache.brain.objects import upload_rows
from edgecache.brain.s3.multipart import uploads
from tests.edgecache.brain.brains import CHARLIE, Brain, Rows, stored_files, until
from tests.edgecache.brain.http_origin import Asked, Gate
from tests.edgecache.brain.s3.multipart.support import add_part, begin
from tests.edgecache.brain.s3_origin import S3Origin


@pytest.fixture
async def origin() -> AsyncIterator[S3Origin]:
    """Return an S3 origin."""
    async with S3Origin() as server:
        yield server


@pytest.fixture(params=["built-in", "s3"])
async def bucket(request: pytest.FixtureRequest, brain: Brain, origin: S3Origin) -> BucketInfo:
    """Return a bucket without an origin, then one with."""
    if request.param == "built-in":
        return await brain.bucket()
    return await brain.origin_bucket("s3", origin.config, origin.secret)


async def test_a_second_completion_does_not_bring_back_what_was_overwritten(
    brain: Brain, bucket: BucketInfo
) -> None:
    upload = await begin(brain, bucket)
    await add_part(brain, bucket, upload, 1, b"of parts")
    await brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))
    await brain.put(bucket, "k", b"newer")

    with pytest.raises(UploadMissing):
        await brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))

    assert await brain.get(bucket, "k") == b"newer"
    await brain.garbage_collector.round()
    assert not stored_files(brain.data_directory.root, "parts")


async def test_a_second_completion_with_a_condition_is_told_that_the_upload_has_ended(
    brain: Brain, bucket: BucketInfo
) -> None:
    upload = await begin(brain, bucket)
    once = Conditions(if_none_match="*", upload=upload)
    await brain.put(bucket, "k", b"of parts", conditions=once)

    with pytest.raises(UploadMissing):
        await brain.put(bucket, "k", b"of parts", conditions=once)


async def test_an_aborted_upload_becomes_no_object(brain: Brain, bucket: BucketInfo) -> None:
    upload = await begin(brain, bucket)
    await upload_rows.remove(brain.database, upload)

    with pytest.raises(UploadMissing):
        await brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))

    with pytest.raises(OriginMissing):
        await brain.objects.open(bucket, "k")


async def test_what_cannot_be_written_leaves_the_upload(brain: Brain, bucket: BucketInfo) -> None:
    upload = await begin(brain, bucket)
    await brain.put(bucket, "k", b"first")

    with pytest.raises(PreconditionFailed):
        await brain.put(
            bucket, "k", b"of parts", conditions=Conditions(if_none_match="*", upload=upload)
        )

    await brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))
    assert await brain.get(bucket, "k") == b"of parts"


async def completion_at(
    origin: S3Origin, brain: Brain, bucket: BucketInfo, upload: str
) -> tuple["asyncio.Task[ObjectVersion]", Gate]:
    """Complete an upload; return the task and the gate at which the origin holds it."""
    gate = Gate()

    async def slowly(asked: Asked) -> None:
        await gate.wait()
        await origin._answer(asked)

    origin.handler = slowly
    write = asyncio.create_task(
        brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))
    )
    await gate.came.wait()
    return write, gate


async def test_while_an_upload_is_completed_at_an_origin_nothing_else_ends_it(
    brain: Brain, origin: S3Origin
) -> None:
    bucket = await brain.origin_bucket("s3", origin.config, origin.secret)
    upload = await begin(brain, bucket)
    write, gate = await completion_at(origin, brain, bucket, upload)
    with pytest.raises(UploadBusy):
        await upload_rows.remove(brain.database, upload)
    with pytest.raises(UploadBusy):
        await brain.put(bucket, "k", b"again", conditions=Conditions(upload=upload))
    gate.opened.set()

    await write
    assert origin.store["k"].data == b"of parts"
    with pytest.raises(UploadMissing):
        await upload_rows.remove(brain.database, upload)


async def test_a_part_that_comes_at_the_end_of_a_completion_ends_with_the_upload(
    brain: Brain, origin: S3Origin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("s3", origin.config, origin.secret)
    upload = await begin(brain, bucket)
    write, gate = await completion_at(origin, brain, bucket, upload)
    with psycopg.connect(rows.url) as part:
        part.execute("SELECT 1 FROM brain_upload WHERE id = %s FOR KEY SHARE", [upload])
        part.execute(
            "INSERT INTO brain_uploadpart"
            " (store_id, file, size, etag, checksums, upload_id, number)"
            " SELECT id, 'late', 1, 'e', '{}', %s, 2 FROM brain_store",
            [upload],
        )
        gate.opened.set()
        await until(lambda: bool(rows.all("SELECT FROM pg_locks WHERE NOT granted")))

    await write
    assert rows.value("SELECT count(*) FROM brain_uploadpart") == 0


async def test_a_completion_waits_for_the_end_of_its_bucket_without_a_deadlock(
    brain: Brain, origin: S3Origin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("s3", origin.config, origin.secret)
    upload = await begin(brain, bucket)
    with psycopg.connect(rows.url) as deletion:
        deletion.execute("SELECT 1 FROM brain_bucket WHERE id = %s FOR UPDATE", [bucket.id])
        write = asyncio.create_task(
            brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))
        )
        await until(lambda: bool(rows.all("SELECT FROM pg_locks WHERE NOT granted")))
        deletion.execute("SELECT 1 FROM brain_upload WHERE id = %s FOR UPDATE NOWAIT", [upload])

    await write
    assert origin.store["k"].data == b"of parts"


async def test_a_brain_that_ends_during_a_completion_leaves_an_upload_that_can_be_completed(
    brain: Brain, origin: S3Origin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("s3", origin.config, origin.secret)
    upload = await begin(brain, bucket)
    rows.run(
        "INSERT INTO brain_pendingwrite (write_id, bucket_id, key, brain_id)"
        " VALUES (%s, %s, 'k', %s)",
        [upload_rows.write_id(upload), bucket.id, uuid7()],
    )
    with pytest.raises(UploadBusy):
        await upload_rows.remove(brain.database, upload)

    await brain.garbage_collector.round()
    await brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))

    assert origin.store["k"].data == b"of parts"


async def test_a_part_that_is_being_written_holds_up_its_own_upload_alone(
    brain: Brain, rows: Rows
) -> None:
    bucket, theirs = await brain.bucket(), await brain.bucket("docs", CHARLIE)
    upload = await begin(brain, bucket)

    with psycopg.connect(rows.url) as part:
        part.execute("SELECT 1 FROM brain_upload WHERE id = %s FOR KEY SHARE", [upload])
        completion = asyncio.create_task(
            brain.put(bucket, "k", b"of parts", conditions=Conditions(upload=upload))
        )
        await asyncio.wait_for(
            asyncio.gather(*(brain.put(theirs, f"k{n}", b"theirs") for n in range(4))), 5
        )
        assert not completion.done()

    await completion
    assert await brain.get(bucket, "k") == b"of parts"


async def test_first_parts_of_a_number_that_come_together_leave_one_file(brain: Brain) -> None:
    bucket = await brain.bucket()
    upload = await begin(brain, bucket)

    await asyncio.gather(*(add_part(brain, bucket, upload, 1, b"%d" % n) for n in range(8)))

    (part,) = await uploads.parts(brain.database, upload)
    (file,) = stored_files(brain.data_directory.root, "parts")
    assert file == brain.data_directory.objects / part.file


async def test_uploads_that_were_not_completed_in_a_week_are_removed(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    old, recent = await begin(brain, bucket), await begin(brain, bucket)
    await add_part(brain, bucket, old, 1, b"part")
    rows.run("UPDATE brain_upload SET created_at = now() - interval '8 days' WHERE id = %s", [old])

    await upload_rows.remove_expired(brain.database)

    assert rows.value("SELECT array_agg(id) FROM brain_upload") == [recent]
    await brain.garbage_collector.round()
    assert not stored_files(brain.data_directory.root, "parts")


async def test_an_expired_upload_whose_parts_are_being_written_waits_for_the_next_time(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    busy = await begin(brain, bucket)
    await begin(brain, bucket)
    rows.run("UPDATE brain_upload SET created_at = now() - interval '8 days'")

    with psycopg.connect(rows.url) as part:
        part.execute("SELECT 1 FROM brain_upload WHERE id = %s FOR KEY SHARE", [busy])
        await asyncio.wait_for(upload_rows.remove_expired(brain.database), 5)

    assert rows.value("SELECT array_agg(id) FROM brain_upload") == [busy]


async def test_many_expired_uploads_are_removed_in_one_go_past_those_in_use(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_rows, "MAX_EXPIRED", 2)
    bucket = await brain.bucket()
    busy = sorted([await begin(brain, bucket) for _ in range(7)])[:2]
    rows.run("UPDATE brain_upload SET created_at = now() - interval '8 days'")

    with psycopg.connect(rows.url) as part:
        part.execute("SELECT 1 FROM brain_upload WHERE id = ANY(%s) FOR KEY SHARE", [busy])
        await upload_rows.remove_expired(brain.database)

    assert rows.value("SELECT array_agg(id ORDER BY id) FROM brain_upload") == busy
