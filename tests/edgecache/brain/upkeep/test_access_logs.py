"""Access logs wait in bounded memory and are written, or counted as missing."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from edgecache.brain.core.errors import StorageFull, StoreUnavailable
from edgecache.brain.core.share_key import PLATFORM, SHARE_KEY
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.metering.meters import Meters
from edgecache.brain.upkeep import access_logs
from edgecache.brain.upkeep.access_logs import AccessLogs
from tests.edgecache.brain.brains import ALICE, CHARLIE, Brain, Rows

LINE = b"x" * 99 + b"\n"


def missing(_bucket: BucketInfo, count: int, _now: datetime) -> bytes:
    return b"missing: %d\n" % count


@pytest.fixture
def meters(brain: Brain) -> Meters:
    return Meters(brain.database, brain.id)


@pytest.fixture
def logs(brain: Brain, meters: Meters) -> AccessLogs:
    """Return the access logs of the brain."""
    return AccessLogs(
        brain.objects,
        brain.directory,
        brain.data_directory,
        meters,
        brain.id,
        line_of_missing=missing,
    )


async def logged(
    brain: Brain, name: str = "docs", tenant: Any = ALICE, *, to: str = "logs", prefix: str = "a/"
) -> BucketInfo:
    """Return a bucket with a log, and create the log's bucket."""
    await brain.bucket(to, tenant)
    bucket = await brain.bucket(name, tenant)
    options = {"log_bucket": to, "log_prefix": prefix}
    return await brain.buckets.change(tenant, bucket.id, options)


async def written(brain: Brain, to: str = "logs", tenant: Any = ALICE) -> dict[str, bytes]:
    """Return the objects of a bucket."""
    bucket = await brain.buckets.one(tenant, to)
    page = await brain.objects.list(bucket)
    return {row.key: await brain.get(bucket, row.key) for row in page.objects}


async def causes(meters: Meters, bucket: BucketInfo) -> list[tuple[str, int]]:
    """Return what the bucket's owner sees."""
    await meters.flush()
    return [(row.cause, row.count) for row in await meters.failures(bucket.id)]


async def test_the_lines_of_an_hour_are_an_object_of_the_tenant_s_bucket(
    brain: Brain, logs: AccessLogs, meters: Meters
) -> None:
    own = await logged(brain)
    others = await logged(brain, tenant=CHARLIE, prefix="")
    logs.add(own, b"1\n")
    logs.add(others, b"another's\n")
    logs.add(own, b"2\n")
    await logs.write()
    await logs.write()
    (found,) = (await written(brain)).items()
    assert found[0].startswith("a/20")
    assert found[1] == b"1\n2\n"
    assert [*(await written(brain, tenant=CHARLIE)).values()] == [b"another's\n"]
    logs.add(own, b"3\n")
    await logs.stop()
    assert sorted((await written(brain)).values()) == [b"1\n2\n", b"3\n"]
    assert await causes(meters, own) == []


async def test_many_lines_are_written_before_the_hour(
    brain: Brain, logs: AccessLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_logs, "WRITTEN_BYTES", 1000)
    bucket = await logged(brain)
    for _ in range(25):
        logs.add(bucket, LINE)
    await logs._tasks.finish()
    assert [*(await written(brain)).values()] == [LINE * 10] * 2
    await logs.stop()
    assert sorted(map(len, (await written(brain)).values())) == [500, 1000, 1000]


async def test_lines_that_become_many_while_others_are_written_end_no_round(
    brain: Brain, logs: AccessLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_logs, "WRITTEN_BYTES", 1000)
    buckets = [await logged(brain), *[await brain.bucket(name) for name in ("more", "last")]]
    for each in buckets[1:]:
        options = {"log_bucket": "logs", "log_prefix": f"{each.name}/"}
        await brain.buckets.change(ALICE, each.id, options)
    buckets = [await brain.buckets.one(ALICE, each.name) for each in buckets]
    for bucket in buckets:
        logs.add(bucket, LINE)
    put = brain.objects.put

    async def while_more_come(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(brain.objects, "put", put)
        for _ in range(9):
            logs.add(buckets[1], LINE)
        return await put(*args, **options)

    monkeypatch.setattr(brain.objects, "put", while_more_come)
    await logs.write()
    await logs._tasks.finish()
    assert sorted(map(len, (await written(brain)).values())) == [100, 100, 1000]
    assert logs._shares.taken == 0


async def test_lines_of_a_tenant_do_not_wait_for_the_share_of_the_one_before(
    brain: Brain, logs: AccessLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant in (ALICE, CHARLIE):
        logs.add(await logged(brain, tenant=tenant), LINE)
    shares, find = [], brain.directory.bucket

    async def bucket(*args: Any) -> Any:
        shares.append(SHARE_KEY.get())
        return await find(*args)

    monkeypatch.setattr(brain.directory, "bucket", bucket)
    await logs.write()
    assert shares == [PLATFORM, PLATFORM]


async def test_lines_beyond_a_share_are_counted_and_another_organization_has_its_own(
    brain: Brain, rows: Rows, meters: Meters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_logs, "LIMIT_BYTES", 4000)
    logs = AccessLogs(
        brain.objects,
        brain.directory,
        brain.data_directory,
        meters,
        brain.id,
        line_of_missing=missing,
    )
    greedy, other = await logged(brain), await logged(brain, tenant=CHARLIE)
    for _ in range(1000):
        logs.add(greedy, LINE)
    for _ in range(5):
        logs.add(other, LINE)
    assert logs._shares.taken <= 4000
    await logs.write()
    (lines,) = (await written(brain)).values()
    kept = lines.count(LINE)
    assert lines == LINE * kept + b"missing: %d\n" % (1000 - kept)
    assert kept >= 10
    assert [*(await written(brain, tenant=CHARLIE)).values()] == [LINE * 5]
    # What is written makes room.
    assert logs._shares.taken == 0
    logs.add(greedy, b"again\n")
    await logs.write()
    assert b"again\n" in (await written(brain)).values()


@pytest.mark.parametrize("why", ["deleted", "full", "fault"])
async def test_a_target_that_is_gone_or_full_costs_the_lines_and_is_shown(
    brain: Brain,
    logs: AccessLogs,
    meters: Meters,
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    bucket = await logged(brain)
    if why == "deleted":
        target = await brain.buckets.one(ALICE, "logs")
        await brain.buckets.delete(ALICE, target.id)
    else:
        monkeypatch.setattr(
            brain.objects, "put", fails(StorageFull() if why == "full" else KeyError("a fault"))
        )
    logs.add(bucket, LINE)
    await logs.write()
    assert logs._shares.taken == 0
    assert await causes(meters, bucket) == [("access-log-lost", 1)]


async def test_lines_wait_on_while_the_store_is_away_and_are_written_once(
    brain: Brain, logs: AccessLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_logs, "WRITTEN_BYTES", 150)
    bucket = await logged(brain)
    with monkeypatch.context() as away:
        away.setattr(brain.objects, "put", fails(StoreUnavailable()))
        logs.add(bucket, b"1\n")
        await logs.write()
        for _ in range(3):
            logs.add(bucket, LINE)
        await logs.write()
    logs.add(bucket, b"2\n")
    await logs.write()
    assert [*(await written(brain)).values()] == [b"1\n" + LINE * 3 + b"2\n"]
    assert logs._shares.taken == 0


def fails(error: Exception) -> Callable[..., Any]:
    async def put(*_args: object, **_options: object) -> None:
        raise error

    return put
