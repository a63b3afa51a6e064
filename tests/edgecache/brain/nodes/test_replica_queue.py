"""The queue of uploads: bounded, and none waits for all of another organization's or bucket's."""

import asyncio
from contextlib import AsyncExitStack

from edgecache.brain.nodes.replica_plan import ReplicaRequest
from edgecache.brain.nodes.replication import PARTS, WAITING, ReplicaQueue

GREEDY, MODEST = 1, 2


def request(
    bucket_id: int, number: int, size: int = 10, organization_id: int = GREEDY
) -> ReplicaRequest:
    """Return a request."""
    return ReplicaRequest(organization_id, bucket_id, number.to_bytes(32, "big"), size, 2)


async def take(queue: ReplicaQueue, *, limit: int = 1, limit_bytes: int = 100) -> list[int]:
    """Upload some blobs of one bucket; return the bucket of each."""
    async with queue.next_requests(limit=limit, limit_bytes=limit_bytes) as requests:
        return [each.bucket_id for each in requests]


async def test_organizations_and_their_buckets_take_turns_and_a_batch_has_one_bucket() -> None:
    queue = ReplicaQueue(uploads=3)
    for number in range(5):
        assert queue.add(request(1, number))
        assert queue.add(request(1, number))
    assert queue.add(request(2, 0))
    for number in range(3):
        assert queue.add(request(3, number, organization_id=MODEST))

    taken = [await take(queue, limit=2) for _ in range(6)]

    assert taken == [[1, 1], [3, 3], [2], [3], [1, 1], [1]]
    assert len(queue) == 0


async def test_a_batch_has_limited_bytes_but_at_least_one_blob() -> None:
    queue = ReplicaQueue(uploads=3)
    for number in range(3):
        queue.add(request(1, number, size=60))

    assert len(await take(queue, limit=9, limit_bytes=120)) == 2
    assert len(await take(queue, limit=9, limit_bytes=10)) == 1


async def test_one_organization_does_not_fill_the_queue() -> None:
    queue = ReplicaQueue(uploads=3)

    added = sum(queue.add(request(number % 9, number)) for number in range(WAITING))

    assert added == WAITING // PARTS
    assert queue.add(request(1, 0, organization_id=MODEST))


async def test_the_queue_is_bounded() -> None:
    queue = ReplicaQueue(uploads=3)

    for organization_id in range(2 * PARTS):
        for number in range(WAITING // PARTS):
            queue.add(request(1, number, organization_id=organization_id))

    assert len(queue) == WAITING


async def test_slow_uploads_of_one_organization_leave_places_to_another() -> None:
    queue = ReplicaQueue(uploads=8)
    for number in range(20):
        queue.add(request(number, 0))
    async with AsyncExitStack() as stack:
        for _ in range(8 // PARTS):
            await stack.enter_async_context(queue.next_requests(limit=1, limit_bytes=1))
        waiting = asyncio.create_task(take(queue))
        await asyncio.sleep(0)
        queue.add(request(77, 0, organization_id=MODEST))

        assert await waiting == [77]
        late = asyncio.create_task(take(queue))
        await asyncio.sleep(0)
        assert not late.done()
    assert await late == [8 // PARTS]


async def test_a_taker_waits_for_a_request() -> None:
    queue = ReplicaQueue(uploads=3)
    waiting = [asyncio.create_task(take(queue)) for _ in range(2)]
    await asyncio.sleep(0)

    queue.add(request(1, 1))
    queue.add(request(2, 1, organization_id=MODEST))

    assert {(await task)[0] for task in waiting} == {1, 2}
