"""The cache of hosts and their buckets, and its invalidation in all brains."""

import asyncio
from typing import Any

import pytest

from edgecache.brain.core.errors import HostTaken, NoSuchBucket, NoSuchHost
from edgecache.brain.directory.hosts import Hosts, LapsedHost
from tests.edgecache.brain.brains import ALICE, CHARLIE, Brain, until

HOST = "files.example.com"
TOKEN, THEIRS = "a" * 64, "c" * 64


def hosts_of(brain: Brain) -> Hosts:
    """Return a brain's hosts."""
    return Hosts(brain.database, brain.coherence, ("localhost", "s3.example.net"))


@pytest.fixture
def looks(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the queries of the brain."""
    asked: list[str] = []
    for name in ("one", "all"):
        look = getattr(brain.database, name)

        async def counted(sql: str, params: Any = (), *, look: Any = look) -> Any:
            asked.append(sql)
            return await look(sql, params)

        monkeypatch.setattr(brain.database, name, counted)
    return asked


async def test_unknown_hosts_cost_one_query_in_total(brain: Brain, looks: list[str]) -> None:
    hosts = hosts_of(brain)
    crowd = [hosts.bucket_id(f"x{number}.example.com") for number in range(200)]
    assert set(await asyncio.gather(*crowd)) == {None}
    for number in range(200):
        assert await hosts.bucket_id(f"y{number}.example.com:9000") is None
    assert len(looks) == 1


async def test_a_host_without_a_bucket_is_recognized_without_a_query(brain: Brain) -> None:
    hosts = hosts_of(brain)
    assert not hosts.may_name_bucket("127.0.0.1:9000")
    assert hosts.may_name_bucket(HOST)
    assert await hosts.bucket_id(HOST) is None
    assert not hosts.may_name_bucket(f"{HOST}:9000")
    mine = await brain.bucket()
    await hosts.prove(ALICE, mine.id, HOST, token=TOKEN, seen=[TOKEN])
    assert hosts.may_name_bucket(f"{HOST}:9000")


async def test_an_invalid_host_costs_no_query(brain: Brain, looks: list[str]) -> None:
    for authority in [
        "",
        ":",
        "localhost:9000",
        "127.0.0.1",
        "[::1]:9000",
        "docs.s3.example.net",
        "x" * 9000,
        "\0",
    ]:
        assert await hosts_of(brain).bucket_id(authority) is None
        assert not looks


async def test_a_change_is_seen_by_the_other_brain_before_it_returns(
    brain: Brain, other: Brain
) -> None:
    hosts, others = hosts_of(brain), hosts_of(other)
    bucket = await brain.bucket()
    for _ in range(20):
        assert await others.bucket_id(HOST) is None
        await hosts.prove(ALICE, bucket.id, HOST, token=TOKEN, seen=[TOKEN])
        assert await others.bucket_id(HOST) == bucket.id
        await hosts.remove(ALICE, bucket.id, HOST)
    await hosts.prove(ALICE, bucket.id, HOST, token=TOKEN, seen=[TOKEN])
    assert await others.bucket_id(HOST) == bucket.id
    await brain.buckets.delete(ALICE, bucket.id)
    assert await others.bucket_id(HOST) is None


async def test_a_brain_without_its_listener_queries_each_time(brain: Brain, other: Brain) -> None:
    hosts, others = hosts_of(brain), hosts_of(other)
    bucket = await brain.bucket()
    assert await others.bucket_id(HOST) is None
    await other.coherence.stop()
    await until(lambda: not other.coherence.is_current)
    await hosts.prove(ALICE, bucket.id, HOST, token=TOKEN, seen=[TOKEN])
    assert await others.bucket_id(HOST) == bucket.id
    await hosts.remove(ALICE, bucket.id, HOST)
    assert await others.bucket_id(HOST) is None


async def test_a_bucket_of_another_tenant_looks_absent(brain: Brain) -> None:
    hosts = hosts_of(brain)
    theirs = await brain.bucket(tenant=CHARLIE)
    with pytest.raises(NoSuchBucket):
        await hosts.prove(ALICE, theirs.id, HOST, token=TOKEN, seen=[TOKEN])
    await hosts.prove(CHARLIE, theirs.id, HOST, token=THEIRS, seen=[THEIRS])
    with pytest.raises(NoSuchHost):
        await hosts.remove(ALICE, theirs.id, HOST)
    assert await hosts.of(ALICE, theirs.id) == []
    assert await hosts.bucket_id(HOST) == theirs.id


async def test_a_host_moves_only_when_its_record_is_gone(brain: Brain) -> None:
    hosts = hosts_of(brain)
    mine, theirs = await brain.bucket(), await brain.bucket(tenant=CHARLIE)
    await hosts.prove(CHARLIE, theirs.id, HOST, token=THEIRS, seen=[THEIRS])
    with pytest.raises(HostTaken):
        await hosts.prove(ALICE, mine.id, HOST, token=TOKEN, seen=[TOKEN, THEIRS])
    assert await hosts.bucket_id(HOST) == theirs.id
    _, lapsed = await hosts.prove(ALICE, mine.id, HOST, token=TOKEN, seen=[TOKEN])
    assert lapsed == LapsedHost(HOST, CHARLIE.organization_id, theirs.name)
    assert await hosts.bucket_id(HOST) == mine.id
    # The host is free again.
    assert (await hosts.prove(ALICE, mine.id, HOST, token=TOKEN, seen=[TOKEN]))[1] is None
    # The old record has no effect any more.
    assert await hosts.record_check(there=[], gone=[THEIRS], unanswered=[]) == []
    (row,) = await hosts.of(ALICE, mine.id)
    assert row.gone_since is None
