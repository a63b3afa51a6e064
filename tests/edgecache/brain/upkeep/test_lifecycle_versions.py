"""The lifecycle of a bucket with versions: markers, versions that are not current, and races."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from edgecache.brain.core.errors import OriginMissing
from edgecache.brain.core.values import BucketInfo, Deletion
from edgecache.brain.directory import commits
from edgecache.brain.upkeep import lifecycle_versions
from edgecache.brain.upkeep.lifecycle_rules import loaded, stored
from tests.edgecache.brain.brains import ALICE, Brain, Rows
from tests.edgecache.brain.upkeep.test_lifecycle import (
    DAILY,
    RULE,
    START,
    apply,
    rule,
    whole_days,
    write,
)

# Everything that the database dates itself is later.
LONG_AGO = START.replace(year=2020)
VERSIONS = replace(RULE, noncurrent_days=3)
MARKERS = replace(RULE, id="markers", removes_markers=True)


async def versioned(brain: Brain, versioning: str = "Enabled") -> BucketInfo:
    bucket = await brain.bucket()
    await brain.buckets.change(ALICE, bucket.id, {"versioning": "Enabled"})
    return await brain.buckets.change(ALICE, bucket.id, {"versioning": versioning})


def age(rows: Rows, at: datetime = START) -> None:
    """Give everything the same moment."""
    rows.run("UPDATE brain_storedobject SET last_modified = %s", [at])
    rows.run(
        "UPDATE brain_noncurrentversion SET last_modified = %s, noncurrent_since = %s", [at] * 2
    )


def versions_of(rows: Rows, key: str) -> list[str]:
    """Return the versions of a key, the newest first: what they are, and markers as such."""
    found = rows.all(
        "SELECT etag, position FROM brain_storedobject WHERE key = %s"
        " UNION ALL SELECT CASE WHEN blob_id IS NULL THEN 'marker' ELSE etag END, position"
        " FROM brain_noncurrentversion WHERE key = %s ORDER BY position DESC",
        [key, key],
    )
    return [each[0] for each in found]


@pytest.mark.parametrize("versioning", ["Enabled", "Suspended"])
async def test_an_object_that_expires_leaves_a_marker(
    brain: Brain, rows: Rows, versioning: str
) -> None:
    bucket = await versioned(brain)
    await write(brain, rows, bucket, "k")
    bucket = await brain.buckets.change(ALICE, bucket.id, {"versioning": versioning})
    await rule(brain, bucket, DAILY)
    await apply(brain, START + timedelta(2))
    with pytest.raises(OriginMissing):
        await brain.get(bucket, "k")
    (marker, version) = versions_of(rows, "k")
    assert (marker, len(version)) == ("marker", 32)
    assert rows.value("SELECT count(*) FROM brain_noncurrentversion WHERE version_id = ''") == (
        versioning == "Suspended"
    )
    # Nothing expires twice.
    await apply(brain, START + timedelta(9))
    assert versions_of(rows, "k") == [marker, version]


@dataclass
class Version:
    """A version of the model, of which the last one is current. since: when the next one came."""

    is_marker: bool
    at: datetime
    since: datetime


async def test_versions_and_markers_of_a_month_are_what_a_model_says(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle_versions, "READ", 5)
    chance = random.Random(7)  # noqa: S311 - repeatable
    bucket = await versioned(brain)
    kept = {"a": 0, "b": 2, "c": None}
    await rule(
        brain,
        bucket,
        replace(VERSIONS, id="a", prefix="a"),
        replace(VERSIONS, id="b", prefix="b", noncurrent_days=1, newer_noncurrent=2),
        replace(MARKERS, prefix="a"),
        replace(DAILY, id="days", prefix="b", days=5),
    )
    model: dict[str, list[Version]] = {f"{first}{n}": [] for first in kept for n in range(3)}
    for day in range(30):
        now = LONG_AGO + timedelta(day)
        for key in chance.sample(sorted(model), 4):
            is_marker = chance.random() < 0.4
            if is_marker:
                await brain.objects.delete(bucket, [key])
            else:
                await brain.put(bucket, key, b"%d" % day)
            if model[key]:
                model[key][-1].since = now
            model[key].append(Version(is_marker, now, now))
            stamp(rows, key, now)

        now = (now + timedelta(1)).replace(hour=0, minute=0)
        await apply(brain, now)

        for key, versions in model.items():
            model[key] = after_a_day(key, versions, now, kept)
            found = ["marker" if each == "marker" else "object" for each in versions_of(rows, key)]
            wanted = ["marker" if each.is_marker else "object" for each in reversed(model[key])]
            assert (key, now, found) == (key, now, wanted)
            if model[key] and model[key][-1].at == now:
                stamp(rows, key, now)
    assert sum(map(len, model.values())) > 20


def stamp(rows: Rows, key: str, now: datetime) -> None:
    """Give the moment to the newest version of a key, and to the end of the one before."""
    newest = (
        "(SELECT max(position) FROM (SELECT position FROM brain_storedobject WHERE key = %s"
        " UNION ALL SELECT position FROM brain_noncurrentversion WHERE key = %s) every)"
    )
    for table in ("storedobject", "noncurrentversion"):
        rows.run(
            f"UPDATE brain_{table} SET last_modified = %s"  # noqa: S608 - the test's own
            f" WHERE key = %s AND position = {newest}",
            [now, key, key, key],
        )
    rows.run(
        "UPDATE brain_noncurrentversion SET noncurrent_since = %s WHERE key = %s"
        " AND noncurrent_since > %s",
        [now, key, LONG_AGO + timedelta(100)],
    )


def after_a_day(
    key: str, versions: list[Version], now: datetime, kept: dict[str, int | None]
) -> list[Version]:
    """Return what is left of a key's versions."""
    left = list(versions)
    days = {"a": 3, "b": 1}.get(key[0])
    if key[0] == "b" and left and not left[-1].is_marker and whole_days(now, left[-1].at) >= 5:
        left[-1].since = now
        left.append(Version(is_marker=True, at=now, since=now))
    if days is not None:
        older, newest = left[:-1], left[-1:]
        protected = kept[key[0]] or 0
        left = [
            each
            for number, each in enumerate(older)
            if whole_days(now, each.since) < days or len(older) - number <= protected
        ] + newest
    if len(left) == 1 and left[0].is_marker:
        is_old = key[0] == "b" and whole_days(now, left[0].at) >= 5
        if key[0] == "a" or is_old:
            return []
    return left


async def test_bytes_of_expired_versions_are_released(brain: Brain, rows: Rows) -> None:
    bucket = await versioned(brain)
    for data in (b"1", b"2", b"3"):
        await brain.put(bucket, "k", data)
    age(rows)
    await rule(brain, bucket, VERSIONS)
    await apply(brain, START + timedelta(4))
    await brain.garbage_collector.round()
    assert (len(versions_of(rows, "k")), rows.count("blob")) == (1, 1)
    assert await brain.get(bucket, "k") == b"3"


async def test_many_versions_of_a_key_expire_in_one_round(brain: Brain, rows: Rows) -> None:
    bucket = await versioned(brain)
    for number in range(2 * commits.KEYS_LOCKED + 4):
        await brain.put(bucket, "k", b"%d" % number)
    await brain.objects.delete(bucket, ["k"])
    age(rows)
    await rule(brain, bucket, replace(VERSIONS, newer_noncurrent=1), MARKERS)
    await apply(brain, START + timedelta(4))
    assert [len(each) for each in versions_of(rows, "k")] == [len("marker"), 32]
    await rule(brain, bucket, VERSIONS, MARKERS)
    await apply(brain, START + timedelta(4))
    assert versions_of(rows, "k") == []


@pytest.mark.parametrize("change", ["current again", "marked again", "no rules"])
async def test_what_changes_between_the_look_and_the_deletion_survives(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    bucket = await versioned(brain)
    found = [await brain.put(bucket, "k", data) for data in (b"1", b"2")]
    if change == "marked again":
        await brain.objects.delete_versions(
            bucket, {Deletion("k", each.version_id) for each in found}
        )
        await brain.objects.delete(bucket, ["k"])
    age(rows)
    await rule(brain, bucket, VERSIONS, MARKERS)
    changes: dict[str, Callable[[], Awaitable[Any]]] = {
        "current again": lambda: brain.objects.delete_versions(
            bucket, {Deletion("k", found[1].version_id)}
        ),
        "marked again": lambda: brain.put(bucket, "k", b"3"),
        "no rules": lambda: rule(brain, bucket),
    }
    delete = lifecycle_versions._delete

    async def late(coherence: Any, of: BucketInfo, due: Sequence[Any]) -> int:
        await changes[change]()
        return await delete(coherence, of, due)

    monkeypatch.setattr(lifecycle_versions, "_delete", late)
    await apply(brain, START + timedelta(4))
    if change == "current again":
        assert await brain.get(bucket, "k") == b"1"
    else:
        assert len(versions_of(rows, "k")) == 2


def test_rules_that_an_earlier_release_stored_are_read() -> None:
    later = {"removes_markers", "noncurrent_days", "newer_noncurrent"}
    (row,) = stored([DAILY])
    assert loaded({name: value for name, value in row.items() if name not in later}) == DAILY
