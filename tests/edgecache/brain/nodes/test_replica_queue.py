"""The queue of uploads: bounded, and no bucket waits for all of another's."""

import asyncio

from edgecache.brain.nodes.replica_plan import ReplicaRequest
from edgecache.brain.nodes.replica_queue import SHARES, WAITING, ReplicaQueue


def request(bucket_id: int, number: int, size: int = 10) -> ReplicaRequest:
    """Return a request."""
    return ReplicaRequest(bucket_id, number.to_bytes(32, "big"), size, 2)


async def test_buckets_take_turns_and_a_batch_has_one_bucket() -> None:
    queue = ReplicaQueue()
    for number in range(5):
        assert queue.add(request(1, number))
        assert queue.add(request(1, number))
    assert queue.add(request(2, 0))

    taken = [await queue.take(limit=2, limit_bytes=100) for _ in range(4)]

    assert [[one.bucket_id for one in batch] for batch in taken] == [[1, 1], [2], [1, 1], [1]]
    assert len(queue) == 0


async def test_a_batch_has_limited_bytes_but_at_least_one_blob() -> None:
    queue = ReplicaQueue()
    for number in range(3):
        queue.add(request(1, number, size=60))

    assert len(await queue.take(limit=9, limit_bytes=120)) == 2
    assert len(await queue.take(limit=9, limit_bytes=10)) == 1


async def test_one_bucket_does_not_fill_the_queue() -> None:
    queue = ReplicaQueue()

    added = sum(queue.add(request(1, number)) for number in range(WAITING))

    assert added == WAITING // SHARES
    assert queue.add(request(2, 0))


async def test_a_taker_waits_for_a_request() -> None:
    queue = ReplicaQueue()
    waiting = [asyncio.create_task(queue.take(limit=1, limit_bytes=1)) for _ in range(2)]
    await asyncio.sleep(0)

    queue.add(request(1, 1))
    queue.add(request(1, 2))

    assert {(await task)[0].sha256[-1] for task in waiting} == {1, 2}
