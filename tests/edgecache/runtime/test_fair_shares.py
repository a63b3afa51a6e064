"""Fair shares of a pool: by organization, bucket and client, with a queue in turn."""

import asyncio

import pytest

from edgecache.runtime.fair_shares import ShareKey, Shares


class Full(Exception):
    """The refusal of the pools here."""


def fill(pool: Shares, path: ShareKey, *, most: int = 10_000) -> int:
    """Take places until no more are granted; return their number."""
    return next(n for n in range(most) if not pool.try_take(path))


def filled_by_bob(*, wait_s: float = 60.0) -> Shares:
    """Return a pool of 12 places, with Bob's maximum in use."""
    pool = Shares(12, refusal=Full, wait_s=wait_s)
    assert fill(pool, ("bob",)) == 6
    return pool


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Use asyncio."""
    return "asyncio"


def test_each_level_has_half_of_the_one_above() -> None:
    assert fill(Shares(1000, refusal=Full), ("bob",)) == 500
    assert fill(Shares(1000, refusal=Full), ("bob", "bucket")) == 250
    assert fill(Shares(1000, refusal=Full), ("bob", "bucket", "client")) == 125


def test_all_buckets_together_have_half() -> None:
    pool = Shares(1000, refusal=Full)
    for bucket in range(100):
        fill(pool, ("bob", bucket))
    assert pool.held(("bob",)) == 500
    assert fill(pool, ("alice",)) == 250


def test_a_small_pool_has_a_permit_for_each_level() -> None:
    pool = Shares(2, refusal=Full)
    assert fill(pool, ("bob", "bucket", "client")) == 1
    assert fill(pool, ("alice", "bucket", "client")) == 1


def test_another_organization_gets_its_share_after_several_greedy_ones() -> None:
    pool = Shares(1000, refusal=Full)
    for greedy in range(15):
        fill(pool, (f"greedy {greedy}", "bucket"))
        assert pool.try_take(("alice", "bucket"))
        pool.give_back(("alice", "bucket"))


def test_another_bucket_and_another_client_get_a_share_of_the_same_organization() -> None:
    pool = Shares(1000, refusal=Full)
    fill(pool, ("bob", "busy", "one client"))
    assert fill(pool, ("bob", "busy", "another client")) > 50
    assert fill(pool, ("bob", "quiet", "another client")) > 50


def test_amounts_are_shared_like_places() -> None:
    pool = Shares(1000, refusal=Full)
    assert pool.try_take(("bob",), 500)
    assert not pool.try_take(("bob",), 1)
    assert pool.try_take(("alice",), 250)
    pool.give_back(("bob",), 500)
    assert (pool.taken, pool.held(("bob",)), pool.held(("alice",))) == (250, 0, 250)


@pytest.mark.anyio
async def test_freed_places_go_to_the_organizations_in_turn() -> None:
    pool = Shares(1, refusal=Full, wait_s=60)
    assert pool.try_take(("bob", 1))
    order: list[ShareKey] = []

    async def use(path: ShareKey) -> None:
        async with pool.permit(path):
            order.append(path)

    paths = [("bob", 1), ("bob", 1), ("bob", 2), ("alice", 3), ("alice", 3), ("charlie", 4)]
    using = []
    for path in paths:
        using.append(asyncio.create_task(use(path)))
        await asyncio.sleep(0)
    assert pool.waiting == len(paths)
    pool.give_back(("bob", 1))
    await asyncio.gather(*using)

    assert order == [("bob", 1), ("alice", 3), ("charlie", 4), ("bob", 2), ("alice", 3), ("bob", 1)]
    assert (pool.taken, pool.waiting) == (0, 0)


@pytest.mark.anyio
async def test_who_waits_in_vain_is_refused_and_leaves_nothing() -> None:
    pool = filled_by_bob(wait_s=0.01)
    with pytest.raises(Full):
        await pool.take(("bob",))
    assert (pool.taken, pool.waiting) == (6, 0)


@pytest.mark.anyio
async def test_a_pool_without_a_queue_refuses_immediately() -> None:
    pool = filled_by_bob(wait_s=0)
    with pytest.raises(Full):
        await pool.take(("bob",))
    await pool.take(("alice",))
    assert (pool.taken, pool.waiting) == (7, 0)


@pytest.mark.anyio
@pytest.mark.parametrize("is_granted", [False, True])
async def test_a_cancelled_caller_gives_up_its_place(*, is_granted: bool) -> None:
    pool = filled_by_bob()
    leaving = asyncio.create_task(pool.take(("bob",)))
    staying = asyncio.create_task(pool.take(("bob",)))
    await asyncio.sleep(0)
    if is_granted:
        pool.give_back(("bob",))
    leaving.cancel()
    if not is_granted:
        # Given back before the cancelled one has run.
        pool.give_back(("bob",))
    await staying
    await asyncio.gather(leaving, return_exceptions=True)

    assert (pool.taken, pool.waiting) == (6, 0)
