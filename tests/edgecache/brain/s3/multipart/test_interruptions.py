"""Multipart uploads: interruptions do not lose acknowledged parts."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.values import StagedFile, WrittenFields
from edgecache.brain.db.database import DatabaseTransaction
from edgecache.brain.s3.multipart import complete, uploads
from edgecache.http.exchange import ClientGone
from tests.edgecache.brain.brains import Brain


async def staged(brain: Brain, data: bytes) -> StagedFile:
    """Stage some bytes."""
    receiver = brain.data_directory.receive()
    await receiver.write(data)
    return await receiver.finish()


async def test_a_part_is_kept_if_the_commit_of_its_replacement_fails(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    made = await uploads.create(
        brain.database, bucket, "k", WrittenFields(), algorithm="", checksum_type=""
    )
    upload = await uploads.find(brain.database, bucket, "k", made)
    first = await staged(brain, b"first")
    await uploads.write_part(brain.database, brain.upload_parts, upload, 1, first, {})
    transaction = brain.database.transaction

    @contextlib.asynccontextmanager
    async def breaking_off() -> AsyncIterator[DatabaseTransaction]:
        async with transaction() as connection:
            yield connection
            raise DatabaseUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(brain.database, "transaction", breaking_off)
        second = await staged(brain, b"second")
        with pytest.raises(DatabaseUnavailable):
            await uploads.write_part(brain.database, brain.upload_parts, upload, 1, second, {})

    (part,) = await uploads.parts(brain.database, upload.id)
    assert (brain.data_directory.objects / part.file).read_bytes() == b"first"
    # Finally only one of them is left.
    third = await staged(brain, b"third")
    await uploads.write_part(brain.database, brain.upload_parts, upload, 1, third, {})
    (part,) = await uploads.parts(brain.database, upload.id)
    assert (brain.data_directory.objects / part.file).read_bytes() == b"third"


async def test_a_completion_without_its_client_continues_and_logs_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    awaited: list[weakref.ref[asyncio.Future[None]]] = []
    unheard: list[dict[str, Any]] = []

    async def never_complete(*_args: object) -> None:
        # Only the task itself references it.
        future = loop.create_future()
        awaited.append(weakref.ref(future))
        await future

    async def nothing(*_args: object, **_options: object) -> None:
        return None

    async def gone(_data: bytes) -> None:
        raise ClientGone

    monkeypatch.setattr(complete, "RESPONSE_AFTER_S", 0.01)
    monkeypatch.setattr(complete, "_complete", never_complete)
    monkeypatch.setattr(complete, "read_xml", nothing)
    monkeypatch.setattr(complete, "parse_parts", nothing)
    monkeypatch.setattr(uploads, "find", nothing)
    call: Any = SimpleNamespace(
        writable_bucket=nothing,
        request=SimpleNamespace(request_id="R", key="k", query=lambda _name: "u"),
        dependencies=SimpleNamespace(settings=SimpleNamespace(is_encrypted=False)),
        exchange=SimpleNamespace(response_stream=lambda *_: None, send_bytes=gone),
    )
    loop.set_exception_handler(lambda _loop, context: unheard.append(context))
    with contextlib.suppress(ClientGone):
        await complete.complete_multipart_upload(call)

    gc.collect()
    future = awaited[0]()
    assert future is not None
    future.set_exception(S3Error("InternalError"))
    del future
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    loop.set_exception_handler(None)
    assert unheard == []
    assert awaited[0]() is None
