"""Uploads of large objects that wait together: how often the database is asked, and failures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock
from uuid import UUID

import pytest

from edgecache.brain.nodes.replica_plan import ReplicaCounts, ReplicaRequest
from edgecache.brain.nodes.replication import LARGE_BLOBS, Replication
from edgecache.http.outgoing import RequestFailed
from edgecache.protocol.batches import BATCHED_BYTES
from tests.edgecache.brain.nodes.rows import node

NODE = node(1)


class Directory:
    """A directory that counts its queries. asked: blobs of each; added: what is held where."""

    def __init__(self) -> None:
        self.asked: list[list[bytes]] = []
        self.added: list[dict[bytes, list[UUID]]] = []
        self.wanted: list[bytes] = []
        self.coherence = Mock(change=self._change)
        self.bucket_by_id = AsyncMock(return_value=Mock(is_public=False))

    async def all_locations(self, hashes: list[bytes]) -> dict[bytes, set[UUID]]:
        self.asked.append(hashes)
        return {sha256: set() for sha256 in hashes}

    async def add_locations(self, held: dict[bytes, list[UUID]]) -> None:
        self.added.append(held)

    @asynccontextmanager
    async def _change(self, **_: Any) -> AsyncIterator[Any]:
        yield Mock()


@asynccontextmanager
async def replicating(directory: Directory, client: object) -> AsyncIterator[Replication]:
    """Run the uploads to one node of files that this brain has."""
    nodes = Mock(candidates=lambda *_, **__: [NODE], all=list)
    read = AsyncMock(side_effect=lambda _, wanted: {name: Path(name.hex()) for name, _ in wanted})
    replication = Replication(
        directory,  # type: ignore[arg-type] # enough of it
        Mock(read=read),
        nodes,
        Mock(),
        client,  # type: ignore[arg-type] # enough of it
        copies=ReplicaCounts(usual=1, hot=1),
    )
    for number in range(LARGE_BLOBS):
        sha256 = bytes([number]) * 32
        replication.want(ReplicaRequest(1, 1, sha256, BATCHED_BYTES + 1, 1))
    await replication.start()
    try:
        yield replication
    finally:
        await replication.stop()


@pytest.mark.parametrize("failing", [None, 3])
async def test_large_objects_that_wait_together_share_the_questions_and_not_a_failure(
    failing: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.nodes.replication.request_check", Mock())
    directory, sent, done = Directory(), list[int](), asyncio.Event()

    async def store(_address: object, sha256: bytes, *_: object, **__: object) -> None:
        if sha256[0] == failing:
            done.set()
            raise RequestFailed("refused", status=500)
        sent.append(sha256[0])
        if len(sent) == LARGE_BLOBS:
            done.set()

    async with asyncio.timeout(10), replicating(directory, Mock(store=store)):
        await done.wait()
        while not directory.added:  # noqa: ASYNC110 - the next steps of a background task
            await asyncio.sleep(0)

    assert [len(hashes) for hashes in directory.asked] == [LARGE_BLOBS]
    kept = [sha256[0] for sha256 in directory.added[0]]
    assert kept == list(range(LARGE_BLOBS if failing is None else failing))
