"""Responses of the CDN that expired long ago are forgotten, and nothing else."""

from dataclasses import replace

import pytest

from edgecache.brain.cdn.rules import StoredResponse
from edgecache.brain.directory import commits, expired
from edgecache.brain.directory.expired import forget_expired
from edgecache.brain.values import Fields
from tests.edgecache.brain.brains import Brain, Rows

pytestmark = pytest.mark.slow

DAY_S = 86_400
ONE_DAY = StoredResponse(0.0, 0, DAY_S, 0, 0, False, "", "", (), ())


async def test_what_could_be_used_a_week_ago_at_last_is_forgotten(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expired, "STEP", 2)
    bucket = await brain.bucket()
    await brain.put(bucket, "object", b"bytes")
    now = float(rows.value("SELECT extract(epoch FROM now())"))
    for name, days, stored in (
        ("old#", 9, ONE_DAY),
        ("older#", 30, ONE_DAY),
        ("oldest#", 300, ONE_DAY),
        ("stale for long#", 9, replace(ONE_DAY, stale_if_error_s=9 * DAY_S)),
        ("fresh for long#", 300, replace(ONE_DAY, lifetime_s=365 * DAY_S)),
        ("recent#", 6, replace(ONE_DAY, lifetime_s=0)),
    ):
        receiver = brain.staging.receive()
        await receiver.write(name.encode())
        staged = await receiver.finish()
        http = replace(stored, at=now - days * DAY_S).as_json()
        row = commits.VersionRow(
            *(bucket.id, "k", name, staged.manifest, Fields(), "e"),
            *((await brain.objects.head(bucket, "object")).last_modified, http),
        )
        async with brain.directory.coherence.transaction() as change:
            await commits.hold_blob(change, staged.manifest)
            await commits.write_cached(change, row)
        rows.run(
            "UPDATE brain_cachedobject SET cached_at = now() - make_interval(days => %s)"
            " WHERE variant = %s",
            [days, name],
        )

    assert await forget_expired(brain.directory.coherence) == 3

    kept = rows.value("SELECT array_agg(variant ORDER BY variant) FROM brain_cachedobject")
    assert kept == ["", "fresh for long#", "recent#", "stale for long#"]
