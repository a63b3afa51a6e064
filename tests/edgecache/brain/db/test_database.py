"""A lost database is a quick, specific error; connections recover when it is back."""

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from common.ids import uuid7
from edgecache.brain.core.errors import DatabaseBusy, DatabaseUnavailable
from edgecache.brain.core.share_key import use_share_of_organization
from edgecache.brain.db.database import BrainDatabase, RawConnection
from tests.edgecache.brain.brains import Rows, running, until
from tests.edgecache.brain.http_origin import StreamServer

pytestmark = pytest.mark.slow


@pytest.fixture
async def database(rows: Rows) -> AsyncIterator[BrainDatabase]:
    """Return a database."""
    one = BrainDatabase(rows.url, max_connections=4)
    await one.start()
    yield one
    await one.stop()


async def test_rows_are_read_by_their_names(database: BrainDatabase) -> None:
    row = await database.one(
        "SELECT 1 AS one, %s::jsonb AS json, %s::bytea AS raw", ['{"a": [1]}', b"\0"]
    )

    assert row is not None
    assert (row.one, row.json, row.raw) == (1, {"a": [1]}, b"\0")
    assert await database.one("SELECT 1 WHERE false") is None
    assert await database.run("UPDATE brain_bucket SET name = name") == 0


async def test_an_absent_database_is_an_error_within_seconds() -> None:
    database = BrainDatabase("postgresql://nobody@127.0.0.1:1/none")
    await database.start()
    async with asyncio.timeout(30):
        with pytest.raises(DatabaseUnavailable):
            await database.one("SELECT 1")

    await database.stop()


async def test_dead_connections_are_replaced(database: BrainDatabase, rows: Rows) -> None:
    all_are_open = asyncio.Barrier(4)

    async def open_one(organization_id: int) -> None:
        use_share_of_organization(organization_id)
        async with database.transaction():
            await all_are_open.wait()

    await asyncio.gather(*(open_one(number) for number in range(4)))
    assert rows.cut("zonal-brain") == 4
    # Termination is requested and takes a moment.
    ended = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'zonal-brain' AND datname = current_database()"
    )
    while rows.value(ended):  # noqa: ASYNC110 - PostgreSQL does not announce it
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)

    assert await database.all("SELECT 1") == [(1,)]
    assert await asyncio.gather(*(database.one("SELECT 1") for _ in range(8))) == [(1,)] * 8


async def test_a_connection_lost_in_a_transaction_rolls_it_back(
    database: BrainDatabase, rows: Rows
) -> None:
    async def cut_off() -> None:
        async with database.transaction() as connection:
            await connection.run(
                "INSERT INTO brain_braininstance (id, lease_until) VALUES (%s, now())", [uuid7()]
            )
            rows.cut("zonal-brain")

    with pytest.raises(DatabaseUnavailable):
        await cut_off()
    assert rows.count("braininstance") == 0
    assert await database.run("UPDATE brain_bucket SET name = name") == 0


async def test_a_hanging_statement_counts_as_an_unavailable_database(
    database: BrainDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.db.database.STATEMENT_TIMEOUT_S", 0.2)
    with pytest.raises(DatabaseUnavailable):
        await database.one("SELECT pg_sleep(60)")
    assert await database.one("SELECT 1") is not None


async def test_an_organization_that_fills_the_connections_leaves_one_to_another(
    database: BrainDatabase,
) -> None:
    is_over, running = asyncio.Event(), 0

    async def hold(statement: int) -> None:
        nonlocal running
        use_share_of_organization(1)
        async with database.transaction() as connection:
            running += 1
            # A second connection inside a transaction waits for no other transaction.
            assert await database.one("SELECT 1") == (1,) if statement == 0 else connection
            await is_over.wait()

    holding = [asyncio.create_task(hold(number)) for number in range(20)]
    await until(lambda: running == 2)

    async def another() -> None:
        use_share_of_organization(2)
        for _ in range(5):
            assert await database.one("SELECT 1") == (1,)

    await asyncio.gather(another(), another())
    assert running == 2
    is_over.set()
    await asyncio.gather(*holding, return_exceptions=True)


async def test_a_caller_without_a_place_hears_that_the_database_is_busy(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.db.database.QUEUE_S", 0.05)
    database = BrainDatabase(rows.url, max_connections=1)
    await database.start()

    async def ask() -> None:
        with pytest.raises(DatabaseBusy):
            await database.one("SELECT 1")

    other = contextvars.copy_context()
    async with database.transaction():
        await asyncio.create_task(ask(), context=other)
    await database.stop()


async def test_an_error_rolls_the_transaction_back(database: BrainDatabase, rows: Rows) -> None:
    async def failing() -> None:
        async with database.transaction() as connection:
            await connection.run(
                "INSERT INTO brain_braininstance (id, lease_until) VALUES (%s, now())", [uuid7()]
            )
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert rows.count("braininstance") == 0


async def test_a_cancellation_while_a_connection_is_returned_does_not_leak_it(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = BrainDatabase(rows.url, max_connections=1)
    await database.start()
    putconn, is_being_given_back = database._pool.putconn, asyncio.Event()

    async def slow_putconn(connection: RawConnection) -> None:
        is_being_given_back.set()
        await asyncio.sleep(0.05)
        await putconn(connection)

    monkeypatch.setattr(database._pool, "putconn", slow_putconn)
    for query in (database.one("SELECT 1"), write(database)):
        is_being_given_back.clear()
        asking = asyncio.create_task(query)
        await is_being_given_back.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

        # The pool has no other connection.
        assert await database.one("SELECT 1") == (1,)
    await database.stop()


async def test_a_connection_closed_outside_the_pool_is_replaced(rows: Rows) -> None:
    database = BrainDatabase(rows.url, max_connections=1)
    await database.start()
    kept = await database._pool.getconn()
    await database._pool.putconn(kept)
    await kept.close()

    assert await database.one("SELECT 1") == (1,)
    await database.stop()


async def write(database: BrainDatabase) -> None:
    """Write a row in a transaction."""
    async with database.transaction() as connection:
        await connection.run("SELECT 1")


@pytest.fixture
async def line(rows: Rows) -> AsyncIterator["Line"]:
    """Return a relay to the database that can be paused."""
    async with Line(rows.url) as one:
        yield one


class Line:
    """A relay in front of PostgreSQL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(pair.split("=") for pair in parts.query.split("&"))
        self._socket = f"{unquote(options['host'])}/.s.PGSQL.{options['port']}"
        self._parts = parts
        self._flows = asyncio.Event()
        self._flows.set()

    async def __aenter__(self) -> "Line":
        self._server = StreamServer(self._serve)
        await self._server.start("127.0.0.1")
        user, _, _ = self._parts.netloc.rpartition("@")
        self.url = self._parts._replace(
            netloc=f"{user}@127.0.0.1:{self._server.port}", query=""
        ).geturl()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._server.stop()

    def hold(self) -> None:
        """Forward nothing, without closing connections."""
        self._flows.clear()

    def release(self) -> None:
        """Forward everything again."""
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_unix_connection(self._socket)
            with contextlib.closing(far_writer):
                await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


async def test_an_unresponsive_database_fences_the_brain(line: Line, tmp_path: Path) -> None:
    async with running(line.url, tmp_path / "brain") as brain:
        bucket = await brain.bucket()
        await brain.put(bucket, "k", b"x")
        assert (await brain.objects.open(bucket, "k")).is_hit

        line.hold()
        hits = 0
        async with asyncio.timeout(60):
            with contextlib.suppress(DatabaseUnavailable):
                while brain.coherence.is_current:
                    # It may use its cache until its lease ends, which may be just now.
                    assert (await brain.objects.open(bucket, "k")).is_hit
                    hits += 1
                    await asyncio.sleep(0.05)
            assert hits
            assert not brain.coherence.is_current
            with pytest.raises(DatabaseUnavailable):
                await brain.objects.open(bucket, "k")

        line.release()
        assert await brain.coherence.wait_until_current(20)
        assert await brain.get(bucket, "k") == b"x"
