"""PostgreSQL for the hot paths: a pool of asynchronous connections, literal SQL, one typed error.

Rows are named tuples: ``row.size`` or unpacked. ``bytea`` is bytes, ``jsonb`` is parsed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, LiteralString, TypeVar

import orjson
import psycopg
from psycopg.rows import namedtuple_row
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from common.server_states import READ_ONLY, is_ended, is_of_server
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseBusy, DatabaseUnavailable
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.runtime.fair_shares import Shares
from edgecache.runtime.futures import retrieve

# A row is a named tuple; the statement decides its fields.
Row = Any
Params = Sequence[Any] | Mapping[str, Any]
Statement = tuple[LiteralString, Params]
RawConnection = psycopg.AsyncConnection[Row]

T = TypeVar("T")

HOLDS_ONE: Final[ContextVar[bool]] = ContextVar("holds_one", default=False)

CONNECT_TIMEOUT_S: Final = 2
LOST_TIMEOUT_S: Final = 0.1
STATEMENT_TIMEOUT_S: Final = 4.0
TRANSACTION_TIMEOUT_S: Final = 10.0
QUEUE_S: Final = 5.0
# What waits without a timeout has a share beside those of an organization's buckets.
WITHOUT_TIMEOUT: Final = "without timeout"
# What the code takes for granted, whatever the server's defaults.
SESSION: Final = (
    r"-c timezone=UTC -c DateStyle=ISO -c default_transaction_isolation=read\ committed"
)
UNREACHABLE: Final = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, PoolClosed)


class DatabaseTransaction:
    """Queries inside one transaction."""

    __slots__ = ("raw",)

    def __init__(self, raw: RawConnection) -> None:
        self.raw = raw

    async def one(self, sql: LiteralString, params: Params = ()) -> Row | None:
        """Return the first row, or None."""
        return await (await self.raw.execute(sql, params)).fetchone()

    async def all(self, sql: LiteralString, params: Params = ()) -> list[Row]:
        return await (await self.raw.execute(sql, params)).fetchall()

    async def run(self, sql: LiteralString, params: Params = ()) -> int:
        """Return the number of rows touched; of no use in a pipeline, which does not wait."""
        return (await self.raw.execute(sql, params)).rowcount

    async def run_pipelined(self, *statements: Statement) -> list[list[Row]]:
        """Return the rows of several statements, which a pipeline sends together."""
        cursors = [await self.raw.execute(sql, params) for sql, params in statements]
        return [await cursor.fetchall() for cursor in cursors]


class BrainDatabase:
    """The brain's database. Queries raise DatabaseUnavailable within seconds when it is lost.

    Its connections are shared: a caller that must wait does so in turn with other organizations,
    and gets DatabaseBusy after QUEUE_S.
    """

    def __init__(self, url: str, *, max_connections: int = 10) -> None:
        self.url = url
        self._is_lost = False
        self._late: set[asyncio.Task[Any]] = set()
        self._returning = BackgroundTasks()
        self._permits = Shares(max_connections, refusal=DatabaseBusy, wait_s=QUEUE_S)
        self._pool: AsyncConnectionPool[RawConnection] = AsyncConnectionPool(
            url,
            kwargs={
                "autocommit": True,
                "row_factory": namedtuple_row,
                "connect_timeout": CONNECT_TIMEOUT_S,
                "application_name": "zonal-brain",
                # Also detects a peer that vanished silently.
                "tcp_user_timeout": 3000,
                "options": SESSION,
            },
            min_size=1,
            max_size=max_connections,
            timeout=CONNECT_TIMEOUT_S,
            reconnect_timeout=5,
            configure=_configure,
            open=False,
            name="brain",
        )

    async def start(self) -> None:
        """Open the pool; the database may still be unreachable."""
        await self._pool.open(wait=False)

    async def stop(self) -> None:
        """Close every connection."""
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._returning.finish()
        await self._pool.close()

    async def one(self, sql: LiteralString, params: Params = ()) -> Row | None:
        """Return the first row, or None. Raises DatabaseUnavailable."""
        return await self._in_time(lambda connection: connection.one(sql, params))

    async def all(self, sql: LiteralString, params: Params = ()) -> list[Row]:
        """Return every row. Raises DatabaseUnavailable."""
        return await self._in_time(lambda connection: connection.all(sql, params))

    async def run(self, sql: LiteralString, params: Params = ()) -> int:
        """Return the number of rows touched.

        Raises DatabaseUnavailable; whether the statement ran is then unknown.
        """
        return await self._in_time(lambda connection: connection.run(sql, params))

    @asynccontextmanager
    async def without_timeout(self) -> AsyncIterator[None]:
        """Wait for the permit of a connection without a timeout; the block may use one.

        For what would be lost otherwise, such as the bytes of a fetch.
        """
        share_key = (SHARE_KEY.get()[0], WITHOUT_TIMEOUT)
        async with self._permits.permit(share_key, has_no_timeout=True):
            token = HOLDS_ONE.set(True)
            try:
                yield
            finally:
                HOLDS_ONE.reset(token)

    @asynccontextmanager
    async def transaction(
        self, *, timeout_s: float = TRANSACTION_TIMEOUT_S, is_pipelined: bool = False
    ) -> AsyncIterator[DatabaseTransaction]:
        """Return a connection inside a transaction, committed at the end of the block.

        timeout_s: of the whole block. is_pipelined: statements are sent without waiting for one
        another's results. Raises DatabaseUnavailable.
        """
        async with self._connection(timeout_s) as connection, AsyncExitStack() as stack:
            if is_pipelined:
                await stack.enter_async_context(connection.raw.pipeline())
            async with connection.raw.transaction():
                yield connection

    async def _ask(self, statement: Callable[[DatabaseTransaction], Awaitable[T]]) -> T:
        async with self._connection() as connection:
            return await statement(connection)

    async def _in_time(self, statement: Callable[[DatabaseTransaction], Awaitable[T]]) -> T:
        """Wait for a statement until its timeout, without waiting for its cancellation.

        psycopg asks a silent server to cancel, and waits for its answer, for seconds more.
        """
        task = asyncio.create_task(self._ask(statement))
        try:
            await asyncio.wait({task}, timeout=STATEMENT_TIMEOUT_S)
        finally:
            if not task.done():
                self._late.add(task)
                task.add_done_callback(self._ended_late)
                task.cancel()
        if task.cancelled() or not task.done():
            raise DatabaseUnavailable
        return task.result()

    def _ended_late(self, task: asyncio.Task[Any]) -> None:
        self._late.discard(task)
        # The caller has its error already.
        retrieve(task)

    @asynccontextmanager
    async def _checked_out(self) -> AsyncIterator[RawConnection]:
        if HOLDS_ONE.get():
            # A second connection must not wait for those that wait for this one's.
            async with self._from_pool() as connection:
                yield connection
            return
        async with self._permits.permit(SHARE_KEY.get()):
            token = HOLDS_ONE.set(True)
            try:
                async with self._from_pool() as connection:
                    yield connection
            finally:
                HOLDS_ONE.reset(token)

    @asynccontextmanager
    async def _from_pool(self) -> AsyncIterator[RawConnection]:
        connection = await self._get()
        while is_ended(connection):
            # The pool replaces it by a new one.
            await self._give_back(connection, is_dead=True)
            connection = await self._get()
        has_refused = False
        try:
            async with connection:
                yield connection
        except psycopg.Error as exc:
            # It is to a former leader, or to a standby that may be promoted.
            has_refused = exc.sqlstate == READ_ONLY
            raise
        finally:
            await self._give_back(connection, is_dead=has_refused)

    async def _get(self) -> RawConnection:
        """Return a connection; while the database is known to be lost callers hardly wait.

        The pool goes on connecting without them.
        """
        timeout_s = LOST_TIMEOUT_S if self._is_lost else CONNECT_TIMEOUT_S
        try:
            connection = await self._pool.getconn(timeout_s)
        except PoolTimeout:
            self._is_lost = True
            raise
        self._is_lost = False
        return connection

    async def _give_back(self, connection: RawConnection, *, is_dead: bool = False) -> None:
        """Return a connection; the pool loses none when the caller is cancelled."""

        async def give_back() -> None:
            if is_dead:
                await connection.close()
            await self._pool.putconn(connection)

        await asyncio.shield(self._returning.add(give_back()))

    @asynccontextmanager
    async def _connection(
        self, timeout_s: float | None = None
    ) -> AsyncIterator[DatabaseTransaction]:
        try:
            async with asyncio.timeout(timeout_s), self._checked_out() as raw:
                yield DatabaseTransaction(raw)
        except (*UNREACHABLE, TimeoutError) as exc:
            raise DatabaseUnavailable from exc
        except psycopg.Error as exc:
            if is_of_server(exc.sqlstate):
                raise DatabaseUnavailable from exc
            raise


async def _configure(connection: RawConnection) -> None:
    set_json_loads(orjson.loads, connection)
    set_json_dumps(orjson.dumps, connection)
