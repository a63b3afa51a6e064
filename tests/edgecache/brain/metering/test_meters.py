"""Usage counters are written exactly once, also after a database outage."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.metering import statistics, usage_lines
from edgecache.brain.metering.meters import (
    HOUR_S,
    LINES_LOCK,
    SLICE_S,
    Meters,
    UsageCount,
    UsageKey,
    add_usage,
    hour_of,
)
from edgecache.brain.metering.statistics import Statistics
from edgecache.brain.metering.usage_lines import add_storage
from tests.edgecache.brain.brains import Rows, until

pytestmark = pytest.mark.slow

NODE = UUID(int=7)
ALICE, CHARLIE = EnvironmentKey(1, 11), EnvironmentKey(2, 21)
BEGIN = 1_800_000_000.0 // HOUR_S * HOUR_S


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def run(url: str, scenario: Callable[[Meters, Clock], Awaitable[None]]) -> None:
    """Run a scenario with the meters of one brain."""

    async def play() -> None:
        database, clock = BrainDatabase(url), Clock()
        await database.start()
        try:
            await scenario(Meters(database, uuid4(), clock=clock), clock)
        finally:
            await database.stop()

    asyncio.run(play())


def count(meters: Meters, tenant: EnvironmentKey = ALICE, **changes: Any) -> None:
    """Count one response."""
    fields = {"is_hit": True, "bytes_served": 100, "seconds": 0.01}
    node_id = changes.pop("node_id", NODE)
    meters.record(tenant, changes.pop("bucket_id", 5), node_id, **(fields | changes))


LINES = (
    "SELECT organization_id, bucket_id, node_id, hits, misses, bytes_served FROM brain_usagecounter"
    " ORDER BY organization_id, node_id"
)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND wait_event_type = 'Lock'"
)
MEASURES = "SELECT node_id, hits, misses, bytes_served FROM brain_measurement ORDER BY node_id"


def test_an_hour_has_one_counter_per_bucket_and_node(rows: Rows) -> None:
    async def scenario(meters: Meters, _clock: Clock) -> None:
        count(meters)
        count(meters)
        count(meters, is_hit=False, node_id=None, bytes_served=7)
        count(meters, CHARLIE, bucket_id=6)
        await meters.flush()
        count(meters)
        await meters.flush()

    run(rows.url, scenario)
    assert rows.all(LINES) == [
        (1, 5, NODE, 3, 0, 300),
        (1, 5, None, 0, 1, 7),
        (2, 6, NODE, 1, 0, 100),
    ]
    assert rows.all(MEASURES) == [(NODE, 4, 0, 400), (None, 4, 1, 407)]


def test_counts_that_are_not_written_yet_are_included(rows: Rows) -> None:
    async def scenario(meters: Meters, _clock: Clock) -> None:
        count(meters)
        assert (meters.unwritten().hits, meters.unwritten(NODE).hits) == (1, 1)
        assert meters.unwritten(uuid4()).hits == 0
        await meters.flush()
        assert meters.unwritten().hits == 0
        assert meters.since_start().hits == 1

    run(rows.url, scenario)


def test_nothing_is_lost_during_a_database_outage(rows: Rows) -> None:

    async def scenario(meters: Meters, clock: Clock) -> None:
        count(meters)
        rows.run("ALTER TABLE brain_usagecounter RENAME TO away")
        try:
            for _ in range(3):
                clock.now += SLICE_S
                count(meters)
                with pytest.raises(Exception, match="brain_usagecounter"):
                    await meters.flush()
            assert meters.unwritten().hits == 4
        finally:
            rows.run("ALTER TABLE away RENAME TO brain_usagecounter")
        await meters.flush()
        assert meters.unwritten().hits == 0

    run(rows.url, scenario)
    assert sum(hits for *_, hits, _, _ in rows.all(LINES)) == 4
    assert rows.value("SELECT sum(hits) FROM brain_measurement WHERE node_id IS NULL") == 4


def test_a_batch_with_an_unconfirmed_commit_counts_once(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(meters: Meters, _clock: Clock) -> None:
        count(meters)
        write = meters._write

        async def write_and_lose_the_answer(batch: Any) -> None:
            await write(batch)
            raise DatabaseUnavailable

        monkeypatch.setattr(meters, "_write", write_and_lose_the_answer)
        with pytest.raises(DatabaseUnavailable):
            await meters.flush()
        monkeypatch.undo()
        await meters.flush()

    run(rows.url, scenario)
    assert rows.all(LINES) == [(1, 5, NODE, 1, 0, 100)]
    assert rows.all(MEASURES) == [(NODE, 1, 0, 100), (None, 1, 0, 100)]


def test_lines_are_made_of_all_counts_and_no_reader_misses_one(rows: Rows) -> None:
    """Ids rise in the order in which lines become visible: `id >` misses none."""

    async def play() -> int:
        database = BrainDatabase(rows.url, max_connections=12)
        await database.start()
        seen, cursor = 0, 0
        writers = [Meters(database, uuid4()) for _ in range(8)]

        async def write(meters: Meters) -> None:
            for _ in range(10):
                count(meters, bucket_id=secrets.randbits(2))
                await meters.flush()

        work = asyncio.gather(*(write(meters) for meters in writers))
        is_last = False
        while not is_last:
            # Read once more after the last writer has ended.
            is_last = work.done()
            while lines := await usage_lines.page(database, cursor, 3, cuts_all=True):
                seen += sum(row.hits for row in lines)
                cursor = lines[-1].id
            await asyncio.sleep(0)
        await work
        await database.stop()
        return seen

    assert asyncio.run(play()) == 80


def test_an_hour_makes_one_line_and_large_amounts_of_the_running_one_are_cut(
    rows: Rows,
) -> None:
    async def play() -> list[tuple[int, int]]:
        database = BrainDatabase(rows.url)
        await database.start()
        # The database has the real time: the running hour, and one that is over.
        for hours, bucket_id, size in (
            (0, 1, 10),
            (0, 1, 10),
            (2, 1, 20),
            (2, 1, 20),
            (0, 2, usage_lines.MUCH_BYTES),
        ):
            key = UsageKey(1, 11, bucket_id, NODE)
            hour = hour_of(time.time() - hours * HOUR_S)
            async with database.transaction() as connection:
                await add_usage(connection, hour, {key: UsageCount(1, 0, size)})
        lines = await usage_lines.page(database, 0, 10, cuts_all=False)
        lines += await usage_lines.page(database, lines[-1].id, 10, cuts_all=True)
        await database.stop()
        return [(line.hits, line.bytes_served) for line in lines]

    *first, last = asyncio.run(play())
    assert sorted(first) == [(1, usage_lines.MUCH_BYTES), (2, 40)]
    assert last == (2, 20)


def store_two_objects(rows: Rows) -> None:
    """Add a bucket with 1,400 bytes."""
    rows.run(
        "WITH bucket AS (INSERT INTO brain_bucket"
        " (organization_id, environment_pk, name, public_name)"
        " VALUES (1, 11, 'assets', 'a1') RETURNING id),"
        " blob AS (INSERT INTO brain_blob (sha256, size, md5, crc32, chunks)"
        " VALUES ('\\x01', 700, '', 0, '') RETURNING sha256)"
        " INSERT INTO brain_storedobject (bucket_id, key, blob_id, etag, content_type, headers,"
        " metadata, checksums, parts, last_modified)"
        " SELECT bucket.id, key, blob.sha256, '', '', '{}', '{}', '{}', '[]', now()"
        " FROM bucket, blob, unnest(ARRAY['a', 'b']) key"
    )


def test_storage_is_added_up_once_an_hour(rows: Rows) -> None:
    store_two_objects(rows)
    clock = Clock()

    async def play() -> list[Any]:
        database = BrainDatabase(rows.url)
        await database.start()
        for _ in range(2):
            await usage_lines.add_storage(database, clock=clock)
        clock.now += HOUR_S
        await usage_lines.add_storage(database, clock=clock)
        lines = await usage_lines.page(database, 0, 10, cuts_all=True)
        await database.stop()
        return [(line.bucket_name, int(line.storage_byte_hours), line.used_at) for line in lines]

    before = datetime.fromtimestamp(BEGIN - HOUR_S, UTC)
    now = datetime.fromtimestamp(BEGIN, UTC)
    assert asyncio.run(play()) == [("assets", 1400, before), ("assets", 1400, now)]


async def test_counters_are_written_while_storage_is_added_up(rows: Rows) -> None:
    """The sum over all objects may take minutes; a lock on their table makes it wait here."""
    store_two_objects(rows)
    clock = Clock()
    brains = [BrainDatabase(rows.url) for _ in range(2)]
    meters = Meters(brains[0], uuid4(), clock=clock)
    for database in brains:
        await database.start()
    async with await psycopg.AsyncConnection.connect(rows.url) as connection:
        await connection.execute("LOCK TABLE brain_storedobject")
        adding = [asyncio.create_task(add_storage(each, clock=clock)) for each in brains]
        await until(lambda: rows.value(WAITING) == len(brains))
        count(meters)
        await meters.flush()
        lines = await usage_lines.page(brains[1], 0, 10, cuts_all=True)
        assert [line.hits for line in lines] == [1]
    await asyncio.gather(*adding)
    added = await usage_lines.page(brains[1], lines[-1].id, 10, cuts_all=True)
    assert [int(line.storage_byte_hours) for line in added] == [1400]
    for database in brains:
        await database.stop()


async def test_lines_of_storage_come_after_those_that_are_written_now(rows: Rows) -> None:
    """Billing reads lines after an id: one that appears below it later would never be paid."""
    store_two_objects(rows)
    database = BrainDatabase(rows.url)
    await database.start()
    async with database.transaction() as connection:
        await connection.run("SELECT pg_advisory_xact_lock(%s)", [LINES_LOCK])
        adding = asyncio.create_task(add_storage(database, clock=Clock()))
        await until(lambda: rows.value(WAITING) == 1)
        row = await connection.one("SELECT nextval('brain_usageline_id_seq') AS id")
        assert row is not None
    await adding
    lines = await usage_lines.page(database, 0, 10, cuts_all=True)
    assert [line.id > row.id for line in lines] == [True]
    await database.stop()


async def test_very_many_objects_are_counted_by_the_last_analyze(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_two_objects(rows)
    rows.run(
        "INSERT INTO brain_cachedobject (bucket_id, key, blob_id, etag, content_type, headers,"
        " metadata, checksums, parts, last_modified, generation, http)"
        " SELECT bucket_id, key, blob_id, '', '', '{}', '{}', '{}', '[]', now(), 1, '{}'"
        " FROM brain_storedobject"
    )
    rows.run("ANALYZE brain_cachedobject")
    rows.run("DELETE FROM brain_cachedobject WHERE key = 'a'")
    database = BrainDatabase(rows.url)
    await database.start()
    counted = []
    for limit in (statistics.MAX_COUNTED, 1):
        monkeypatch.setattr(statistics, "MAX_COUNTED", limit)
        made = Statistics(database, None, None)  # type: ignore[arg-type]  # not used here
        counted.append(await made._objects())
    await database.stop()
    assert counted == [1, 2]


def test_old_minutes_become_hours_and_keep_their_sums(rows: Rows) -> None:
    for minute in range(90):
        rows.run(
            "INSERT INTO brain_measurement (brain_id, node_id, minute, hits, misses, bytes_served,"
            " latencies) VALUES (%s, NULL, date_trunc('hour', now()) - interval '3 days'"
            ' + make_interval(mins => %s), 1, 2, 3, \'{"counts": {"5": 1}}\')',
            [uuid4(), minute],
        )

    async def play() -> None:
        database = BrainDatabase(rows.url)
        await database.start()
        statistics = Statistics(database, None, None)  # type: ignore[arg-type]  # not used here
        await statistics.roll_up()
        await statistics.roll_up()
        await database.stop()

    asyncio.run(play())
    assert rows.all("SELECT hits, misses, bytes_served FROM brain_measurement ORDER BY hits") == [
        (30, 60, 90),
        (60, 120, 180),
    ]
