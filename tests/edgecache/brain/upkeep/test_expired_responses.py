"""Useless or too many responses of the CDN are forgotten, and nothing else."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from edgecache.brain.core.values import BucketInfo, WrittenFields
from edgecache.brain.directory import commits
from edgecache.brain.http_caching.caching_rules import StoredResponse
from edgecache.brain.upkeep import expired_responses
from edgecache.brain.upkeep.expired_responses import forget_excess, forget_expired
from tests.edgecache.brain.brains import CHARLIE, Brain, Rows

pytestmark = pytest.mark.slow

DAY_S = 86_400
ONE_DAY = StoredResponse(0.0, 0, DAY_S, 0, 0, False, "", "", (), ())

Respond = Callable[[BucketInfo, str, int, StoredResponse], Awaitable[None]]


@pytest.fixture
def respond(brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> Respond:
    """Return a function that stores a response of some days ago."""
    monkeypatch.setattr(expired_responses, "STEP", 2)
    monkeypatch.setattr(expired_responses, "READ", 3)

    async def store(bucket: BucketInfo, path: str, days: int, response: StoredResponse) -> None:
        key, _, variant = path.partition("?")
        receiver = brain.data_directory.receive()
        await receiver.write(path.encode())
        staged = await receiver.finish()
        at = rows.value("SELECT now() - make_interval(days => %s)", [days])
        http = replace(response, at=at.timestamp()).as_json()
        row = commits.VersionRow(
            bucket.id, key, variant, staged.manifest, WrittenFields(), "e", at, http
        )
        async with brain.directory.coherence.transaction() as change:
            await commits.hold_blob(change, staged.manifest)
            await commits.write_cached(change, row)
        rows.run(
            "UPDATE brain_cachedobject SET cached_at = %s WHERE key = %s AND variant = %s",
            [at, key, variant],
        )

    return store


def paths(rows: Rows) -> list[str]:
    """Return what the directory has."""
    found = rows.all("SELECT concat_ws('?', key, nullif(variant, '')) FROM brain_cachedobject")
    return sorted(path for (path,) in found)


async def test_what_could_be_used_a_week_ago_at_last_is_forgotten(
    brain: Brain, rows: Rows, respond: Respond
) -> None:
    bucket, other = await brain.bucket(), await brain.bucket("other")
    await brain.put(bucket, "object", b"bytes")
    rows.run("UPDATE brain_cachedobject SET cached_at = now() - interval '1 year'")
    await respond(bucket, "k?old", 9, ONE_DAY)
    await respond(bucket, "k?oldest", 300, ONE_DAY)
    await respond(bucket, "without a query", 30, ONE_DAY)
    await respond(other, "k?older", 30, ONE_DAY)
    await respond(bucket, "k?stale for long", 9, replace(ONE_DAY, stale_if_error_s=9 * DAY_S))
    await respond(bucket, "k?fresh for long", 300, replace(ONE_DAY, lifetime_s=365 * DAY_S))
    await respond(bucket, "k?recent", 6, replace(ONE_DAY, lifetime_s=0))

    assert await forget_expired(brain.directory.coherence) == 4

    assert paths(rows) == ["k?fresh for long", "k?recent", "k?stale for long", "object"]


async def test_an_organization_keeps_its_latest_responses(
    brain: Brain, rows: Rows, respond: Respond
) -> None:
    bucket, second = await brain.bucket(), await brain.bucket("second")
    neighbour = await brain.bucket(tenant=CHARLIE)
    await brain.put(bucket, "object", b"bytes")
    rows.run("UPDATE brain_cachedobject SET cached_at = now() - interval '1 year'")
    for age in range(1, 6):
        await respond(bucket, f"a{age}", age, ONE_DAY)
        await respond(second, f"b{age}?query", age, ONE_DAY)
    for age in range(6, 10):
        await respond(neighbour, f"c{age}", age, ONE_DAY)

    assert await forget_excess(brain.directory.coherence, 4) == 6

    kept = ["a1", "a2", "b1?query", "b2?query", "c6", "c7", "c8", "c9", "object"]
    assert paths(rows) == kept
    assert await forget_excess(brain.directory.coherence, 4) == 0
