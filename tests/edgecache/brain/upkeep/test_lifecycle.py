"""The lifecycle of buckets: what expires, when, and what survives. The clock is given."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from edgecache.brain.core.errors import DatabaseBusy, OriginMissing
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import TAGGING_HEADER, BucketInfo, WrittenFields
from edgecache.brain.objects import builtin_origin
from edgecache.brain.upkeep import lifecycle
from edgecache.brain.upkeep.lifecycle import Lifecycle
from edgecache.brain.upkeep.lifecycle_rules import LifecycleRule, stored
from tests.edgecache.brain.brains import CHARLIE, Brain, Rows
from tests.edgecache.brain.children import child
from tests.edgecache.brain.s3.multipart.support import begin

START = datetime(2026, 11, 1, 9, 30, tzinfo=UTC)
RULE = LifecycleRule(
    id="r",
    is_enabled=True,
    form="filter",
    prefix=None,
    tags={},
    greater_bytes=None,
    less_bytes=None,
    days=None,
    date=None,
    abort_days=None,
)
DAILY = replace(RULE, days=1)


async def apply(brain: Brain, now: datetime) -> None:
    """Run the upkeep of a moment."""
    work = Lifecycle(brain.database, brain.coherence, brain.id)
    await work.run(now=now)
    await work.stop()


async def write(
    brain: Brain,
    rows: Rows,
    bucket: BucketInfo,
    key: str,
    *,
    at: datetime = START,
    data: bytes = b"x",
    tags: dict[str, str] | None = None,
) -> None:
    """Write an object of a moment."""
    headers = {TAGGING_HEADER: urlencode(tags)} if tags else {}
    await brain.put(bucket, key, data, WrittenFields(headers=headers))
    rows.run(
        "UPDATE brain_storedobject SET last_modified = %s WHERE bucket_id = %s AND key = %s",
        [at, bucket.id, key],
    )


async def rule(brain: Brain, bucket: BucketInfo, *rules: LifecycleRule) -> None:
    await brain.buckets.set_lifecycle(bucket.id, stored(rules))


def keys_of(rows: Rows, bucket: BucketInfo, table: str = "storedobject") -> set[str]:
    sql = f"SELECT key FROM brain_{table} WHERE bucket_id = %s"  # noqa: S608 - the test's own
    return {key for (key,) in rows.all(sql, [bucket.id])}


@dataclass
class Made:
    """An object, or an unfinished upload, of the model."""

    key: str
    size: int
    tags: dict[str, str]
    at: datetime


def whole_days(now: datetime, at: datetime) -> int:
    """Return how many days after the midnight that follows a moment have passed; -1 before it."""
    return (now.date() - at.date()).days - 1


async def test_a_month_of_objects_and_uploads_is_what_a_model_says(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "READ", 7)
    monkeypatch.setattr(lifecycle, "UPLOADS_READ", 2)
    chance = random.Random(42)  # noqa: S311 - repeatable
    bucket, untouched = await brain.bucket(), await brain.bucket(tenant=CHARLIE)
    rules: list[tuple[LifecycleRule, Callable[[Made, datetime], bool]]] = [
        (
            replace(RULE, id="logs", form="prefix", prefix="logs/", days=3),
            lambda o, now: o.key.startswith("logs/") and whole_days(now, o.at) >= 3,
        ),
        (
            replace(RULE, id="tag", tags={"keep": "a week", "ü": ""}, days=7),
            lambda o, now: (
                o.tags == {"keep": "a week", "ü": "", "more": "x"} and whole_days(now, o.at) >= 7
            ),
        ),
        (
            replace(RULE, id="large", form="and", prefix="l", greater_bytes=40, days=1),
            lambda o, now: o.key[0] == "l" and o.size > 40 and whole_days(now, o.at) >= 1,
        ),
        (
            replace(RULE, id="small", less_bytes=5, days=20),
            lambda o, now: o.size < 5 and whole_days(now, o.at) >= 20,
        ),
        (
            replace(RULE, id="date", prefix="tmp/", date="2026-11-15"),
            lambda o, now: o.key.startswith("tmp/") and now >= datetime(2026, 11, 15, tzinfo=UTC),
        ),
        (replace(RULE, id="off", is_enabled=False, days=1), lambda _o, _now: False),
    ]
    aborts = replace(RULE, id="uploads", prefix="logs/", abort_days=2)
    await rule(brain, bucket, *(one for one, _ in rules), aborts)
    objects: dict[str, Made] = {}
    uploads: list[Made] = []
    await write(brain, rows, untouched, "logs/a", at=START - timedelta(100))
    now = START
    for day in range(30):
        for number in range(6):
            key = f"{chance.choice(['logs/', 'tmp/', 'lä/', 'b', ''])}k{day}-{number}"
            size = chance.choice([0, 4, 5, 40, 41])
            tags = chance.choice([{}, {"keep": "a week"}, {"keep": "a week", "ü": "", "more": "x"}])
            objects[key] = Made(key, size, tags, now + timedelta(minutes=number))
            await write(brain, rows, bucket, key, at=objects[key].at, data=b"x" * size, tags=tags)
        if day % 3 == 0:
            again = chance.choice(sorted(objects))
            objects[again].at = now
            await write(
                brain,
                rows,
                bucket,
                again,
                at=now,
                data=b"x" * objects[again].size,
                tags=objects[again].tags,
            )
        for key in (f"logs/{day}", f"other/{day}"):
            upload_id = await begin(brain, bucket, key)
            rows.run("UPDATE brain_upload SET created_at = %s WHERE id = %s", [now, upload_id])
            uploads.append(Made(key, 0, {}, now))

        now = START.replace(hour=0, minute=chance.choice([0, 59])) + timedelta(day + 1)
        await apply(brain, now)

        objects = {
            key: made
            for key, made in objects.items()
            if not any(is_due(made, now) for _, is_due in rules)
        }
        uploads = [
            made
            for made in uploads
            if not (made.key.startswith("logs/") and whole_days(now, made.at) >= 2)
        ]
        assert keys_of(rows, bucket) == objects.keys(), now
        assert keys_of(rows, bucket, "cachedobject") == objects.keys(), now
        assert keys_of(rows, bucket, "upload") == {made.key for made in uploads}, now
        now = now.replace(hour=chance.randrange(1, 24))
    assert len(objects) > 20
    assert keys_of(rows, untouched) == {"logs/a"}


async def test_the_work_of_a_day_is_done_once_and_anew_for_new_rules(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    await rule(brain, bucket, replace(DAILY, prefix="a"))
    await apply(brain, START)
    await write(brain, rows, bucket, "a", at=START - timedelta(9))
    await write(brain, rows, bucket, "b", at=START - timedelta(9))
    await apply(brain, START + timedelta(hours=1))
    assert keys_of(rows, bucket) == {"a", "b"}
    await rule(brain, bucket, replace(DAILY, prefix="b"))
    await apply(brain, START + timedelta(hours=1))
    assert keys_of(rows, bucket) == {"a"}


async def test_an_object_is_gone_for_every_brain_and_its_bytes_are_released(
    brain: Brain, other: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    await write(brain, rows, bucket, "k")
    assert await other.get(bucket, "k") == b"x"
    await rule(brain, bucket, DAILY)
    await apply(brain, START + timedelta(2))
    for each in (brain, other):
        with pytest.raises(OriginMissing):
            await each.get(bucket, "k")
    await brain.garbage_collector.round()
    assert rows.count("blob") == 0


@pytest.mark.parametrize("change", ["rewrite", "retag", "rules", "no rules"])
async def test_what_changes_between_the_look_and_the_deletion_survives(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    bucket = await brain.bucket()
    await write(brain, rows, bucket, "k", tags={"a": "b"})
    await write(brain, rows, bucket, "gone", tags={"a": "b"})
    await rule(brain, bucket, replace(DAILY, tags={"a": "b"}))
    changes: dict[str, Callable[[], Awaitable[Any]]] = {
        # The same bytes with the same tags: only the moment differs.
        "rewrite": lambda: brain.put(
            bucket, "k", b"x", WrittenFields(headers={TAGGING_HEADER: "a=b"})
        ),
        "retag": lambda: brain.objects.tag(bucket, "k", "a=c"),
        "rules": lambda: rule(brain, bucket, replace(DAILY, prefix="other")),
        "no rules": lambda: rule(brain, bucket),
    }
    expire = builtin_origin.expire

    async def late(coherence: Any, of: BucketInfo, objects: Sequence[Any]) -> int:
        await changes[change]()
        return await expire(coherence, of, objects)

    monkeypatch.setattr(builtin_origin, "expire", late)
    await apply(brain, START + timedelta(2))
    assert keys_of(rows, bucket) == ({"k", "gone"} if "rules" in change else {"k"})
    assert await brain.get(bucket, "k") == b"x"


async def test_two_brains_at_the_same_time_do_it_once(
    brain: Brain, other: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "READ", 3)
    buckets = [await brain.bucket(name) for name in ("first", "second", "third")]
    for bucket in buckets:
        for number in range(10):
            await write(brain, rows, bucket, f"k{number}")
        await rule(brain, bucket, DAILY)
    deleted: list[str] = []
    expire = builtin_origin.expire

    async def counted(coherence: Any, bucket: BucketInfo, objects: Sequence[Any]) -> int:
        deleted.extend(f"{bucket.id}/{row.key}" for row in objects)
        return await expire(coherence, bucket, objects)

    monkeypatch.setattr(builtin_origin, "expire", counted)
    now = START + timedelta(2)
    await asyncio.gather(apply(brain, now), apply(other, now))
    # A brain may come when the other one has just finished a bucket.
    await asyncio.gather(apply(brain, now), apply(other, now))
    assert len(deleted) == len(set(deleted)) == 30
    assert rows.count("storedobject") == rows.count("filllease") == 0


async def test_another_brain_goes_on_after_a_kill_in_the_middle(
    brain: Brain, rows: Rows, tmp_path: Path
) -> None:
    bucket = await brain.bucket()
    await write(brain, rows, bucket, "k")
    upload_id = await begin(brain, bucket, "k")
    rows.run("UPDATE brain_upload SET created_at = %s WHERE id = %s", [START, upload_id])
    await rule(brain, bucket, replace(DAILY, abort_days=1))
    now = START + timedelta(2)
    async with child(rows.url, tmp_path / "doomed") as doomed:
        at = "edgecache.brain.upkeep.lifecycle:Lifecycle._abort"
        await doomed.halt(at, "lifecycle", now=now.isoformat())
        await apply(brain, now)
        assert (keys_of(rows, bucket), rows.count("upload")) == (set(), 1)
        await doomed.kill()
    rows.run("DELETE FROM brain_braininstance WHERE id <> %s", [brain.id])
    await apply(brain, now)
    assert rows.count("upload") == rows.count("filllease") == 0


@pytest.mark.parametrize("why", ["rules", "share"])
async def test_a_bucket_that_fails_keeps_no_objects_of_others(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    failing, other = await brain.bucket(), await brain.bucket(tenant=CHARLIE)
    for bucket in (failing, other):
        await write(brain, rows, bucket, "k")
        await rule(brain, bucket, DAILY)
    if why == "rules":
        rows.run(
            "UPDATE brain_bucket SET lifecycle = %s WHERE id = %s",
            ['[{"of": "another release"}]', failing.id],
        )
    expire, run_bucket = builtin_origin.expire, Lifecycle._run_bucket
    shares = set()

    async def busy(coherence: Any, bucket: BucketInfo, due: Any) -> int:
        if bucket.id == failing.id:
            raise DatabaseBusy
        return await expire(coherence, bucket, due)

    async def run(of: Lifecycle, bucket_id: int, now: datetime) -> None:
        shares.add(SHARE_KEY.get())
        await run_bucket(of, bucket_id, now)

    monkeypatch.setattr(builtin_origin, "expire", busy)
    monkeypatch.setattr(Lifecycle, "_run_bucket", run)
    await apply(brain, START + timedelta(2))
    assert (keys_of(rows, failing), keys_of(rows, other)) == ({"k"}, set())
    # No tenant waits for a share of the one before.
    assert len(shares) == 1
    assert rows.count("filllease") == 0
