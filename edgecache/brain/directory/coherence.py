"""Several brains, one truth: PostgreSQL tells each of them what changed, in the order of commits.

Every write announces, inside its transaction, what it changed. Each brain listens on a connection
of its own and renews a lease on it once a second. A brain answers from memory only while that
lease runs; one whose listener is lost empties its memory before it uses it again. A write that
must be seen by all returns when every brain with a living lease has acknowledged it, or when that
lease has run out. A brain that starts greets the living ones first and uses no memory until they
have answered: from then on they wait for it. A brain alone waits for nobody.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final
from uuid import UUID

import orjson
import psycopg
import structlog

from edgecache.brain.database import CONNECT_TIMEOUT_S, Connection, Database
from edgecache.brain.errors import DatabaseAway

log = structlog.get_logger(__name__)

CHANNEL: Final = "zonal_brain"
LEASE_S: Final = 5
# Of the lease, what is left to PostgreSQL's clock running apart from ours.
MARGIN_S: Final = 1.0
RENEW_S: Final = 1.0
RETRY_S: Final = 0.25
ACK_LIMIT_S: Final = 15.0
# PostgreSQL refuses a payload of 8,000 bytes.
PAYLOAD_BYTES: Final = 7_500
HELLO: Final = "hello"
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

Announcement = tuple[Any, ...]
Listener = Callable[..., None]

RENEW: Final = (
    "INSERT INTO brain_braininstance (id, lease_until)"
    " VALUES (%s, clock_timestamp() + make_interval(secs => %s))"
    " ON CONFLICT (id) DO UPDATE SET lease_until = EXCLUDED.lease_until"
)
NOTIFY: Final = "SELECT pg_notify(%s, said) FROM unnest(%s::text[]) said"
LIVING: Final = (
    "SELECT id FROM brain_braininstance WHERE lease_until > clock_timestamp() AND id <> %s"
)


class Change(Connection):
    """A transaction that says what it changes."""

    __slots__ = ("announcements",)

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.raw)
        self.announcements: list[Announcement] = []

    def announce(self, topic: str, *values: str | int) -> None:
        """Tell every brain's subscribers of a topic, this one's included, once it is committed."""
        self.announcements.append((topic, *values))


class Pending:
    """A change that waits to be seen.

    peers: who has to see it, None before it is committed. is_blind: it was committed while this
    brain had no lease, and so may not know who lives; only a greeting tells. is_greeted: one did.
    """

    __slots__ = ("acked", "is_blind", "is_greeted", "peers")

    def __init__(self) -> None:
        self.acked: set[UUID] = set()
        self.peers: frozenset[UUID] | None = None
        self.is_blind = False
        self.is_greeted = False

    def is_seen(self, living: set[UUID]) -> bool:
        """Tell whether every brain that may answer from memory has seen it."""
        if self.is_blind:
            return self.is_greeted
        return not (self.peers or frozenset()) & living - self.acked


class Coherence:
    """This brain's part in it."""

    def __init__(self, database: Database, brain_id: UUID) -> None:
        self._database = database
        self._id = brain_id
        self._hex = brain_id.hex
        self._subscribers: dict[str, list[Listener]] = {}
        self._on_loss: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._greeting: asyncio.Task[None] | None = None
        self._lease_until = 0.0
        self._is_greeted = False
        self._number = 0
        self._peers: set[UUID] = set()
        self._pending: dict[int, Pending] = {}
        # Of a greeting: what was committed before it. Who acknowledges it has seen all of that.
        self._earlier: dict[int, list[Pending]] = {}
        self._news = asyncio.Condition()
        # Rises with whatever may make untrue what is remembered anywhere.
        self.changes = 0

    @property
    def is_current(self) -> bool:
        """Tell whether what this brain remembers may be answered with."""
        return self._is_greeted and _clock() < self._lease_until

    @property
    def peers(self) -> frozenset[UUID]:
        """Give the other brains that live."""
        return frozenset(self._peers)

    @property
    def brain_id(self) -> UUID:
        """Give this brain's id."""
        return self._id

    def subscribe(self, topic: str, listener: Listener) -> None:
        """Have a function called with the values of each announcement of a topic."""
        self._subscribers.setdefault(topic, []).append(listener)

    def on_loss(self, forget: Callable[[], None]) -> None:
        """Have a function called when announcements were missed: it empties what is remembered."""
        self._on_loss.append(forget)

    async def start(self) -> None:
        """Begin to listen, now and after each loss; returns when current, or after two seconds."""
        self._task = asyncio.create_task(self._keep_listening())
        await self.wait_until_current(2.0)

    async def wait_until_current(self, timeout_s: float) -> bool:
        """Wait until memory counts."""
        try:
            async with asyncio.timeout(timeout_s), self._news:
                await self._news.wait_for(lambda: self.is_current)
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Stop listening and end the lease, so that nobody waits for this brain."""
        for task in (self._greeting, self._task):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._lose()
        try:
            await self._database.run("DELETE FROM brain_braininstance WHERE id = %s", [self._id])
        except DatabaseAway:
            log.warning("brain_lease_left", brain_id=str(self._id))

    @asynccontextmanager
    async def change(self, *, waits: bool = True, timeout_s: float = 10.0) -> AsyncIterator[Change]:
        """Give a transaction; at its end it is committed, announced, and seen by every brain.

        waits: for the other brains' acknowledgement; without it they see it in a moment.
        Raises DatabaseAway: then it may have happened, and repeating it must be harmless.
        """
        self._number += 1
        number = self._number
        pending = self._pending[number] = Pending()
        try:
            async with self._database.transaction(timeout_s=timeout_s) as connection:
                change = Change(connection)
                yield change
                payloads = self._payloads(change.announcements, number, wants_ack=waits)
                if payloads:
                    await change.run(NOTIFY, [CHANNEL, payloads])
            # Who comes later reads what is committed by now; and while the lease runs nobody has
            # come without this brain's knowing.
            pending.peers = frozenset(self._peers)
            pending.is_blind = _clock() >= self._lease_until
            for topic, *values in change.announcements:
                self._tell(topic, values)
            if waits and payloads:
                await self._wait_until_seen(pending)
        finally:
            del self._pending[number]

    def _payloads(
        self, announcements: list[Announcement], number: int, *, wants_ack: bool
    ) -> list[str]:
        payloads: list[str] = []
        batch: list[bytes] = []
        size = 0
        for encoded in map(orjson.dumps, announcements):
            if batch and size + len(encoded) > PAYLOAD_BYTES:
                payloads.append(self._payload(batch, number, wants_ack=False))
                batch, size = [], 0
            batch.append(encoded)
            size += len(encoded) + 1
        if batch:
            payloads.append(self._payload(batch, number, wants_ack=wants_ack))
        return payloads

    def _payload(self, batch: list[bytes], number: int, *, wants_ack: bool) -> str:
        body = b",".join(batch).decode()
        return f'["{self._hex}",{number},{int(wants_ack)},[{body}]]'

    async def _wait_until_seen(self, pending: Pending) -> None:
        if pending.is_seen(self._peers):
            return
        try:
            async with asyncio.timeout(ACK_LIMIT_S), self._news:
                await self._news.wait_for(lambda: pending.is_seen(self._peers))
        except TimeoutError:
            raise DatabaseAway("Another brain did not confirm the change in time.") from None

    # --- listening --------------------------------------------------------------------------

    async def _keep_listening(self) -> None:
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError, TimeoutError, DatabaseAway) as exc:
                log.warning("brain_listener_lost", kind=type(exc).__name__)
            except Exception:
                # An announcement that nobody here could make sense of: what it meant is not known.
                log.exception("brain_listener_failed")
            finally:
                self._lose()
            await asyncio.sleep(RETRY_S)

    async def _listen(self) -> None:
        async with asyncio.timeout(CONNECT_TIMEOUT_S * 2):
            connection = await psycopg.AsyncConnection.connect(
                self._database.url,
                autocommit=True,
                connect_timeout=CONNECT_TIMEOUT_S,
                application_name="zonal-brain-listener",
                tcp_user_timeout=3000,
            )
        async with connection:
            for channel in (CHANNEL, _ack_channel(self._hex)):
                await connection.execute(f'LISTEN "{channel}"')
            # What began while nobody listened may have missed something.
            self._forget()
            await self._renew(connection)
            self._greeting = asyncio.create_task(self._greet())
            due = _clock() + RENEW_S
            while True:
                await self._take_in(connection, due - _clock())
                if _clock() >= due:
                    await self._renew(connection)
                    due = _clock() + RENEW_S

    async def _renew(self, connection: psycopg.AsyncConnection[Any]) -> None:
        begun = _clock()
        async with asyncio.timeout(LEASE_S - MARGIN_S):
            await connection.execute(RENEW, [self._id, LEASE_S])
            living = await (await connection.execute(LIVING, [self._id])).fetchall()
        self._peers = {row[0] for row in living}
        # What was announced before the renewal has come with its answer; it is taken in before
        # the renewal counts, and may name a newcomer.
        await self._take_in(connection, 0)
        self._lease_until = begun + LEASE_S - MARGIN_S
        await self._wake()

    async def _take_in(self, connection: psycopg.AsyncConnection[Any], timeout_s: float) -> None:
        """Act on what has arrived, waiting for it at most so long, and acknowledge it."""
        acks: dict[str, list[int]] = {}
        arrived = connection.notifies(timeout=max(timeout_s, 0), stop_after=1)
        async with aclosing(arrived):
            async for notification in arrived:
                if notification.channel == CHANNEL:
                    self._take(notification.payload, acks)
                else:
                    self._take_ack(notification.payload)
        for sender, numbers in acks.items():
            said = " ".join(map(str, (self._hex, *numbers)))
            await connection.execute("SELECT pg_notify(%s, %s)", [_ack_channel(sender), said])
        await self._wake()

    def _take(self, payload: str, acks: dict[str, list[int]]) -> None:
        sender, number, wants_ack, announcements = orjson.loads(payload)
        for topic, *values in announcements:
            if topic == HELLO and sender != self._hex:
                self._peers.add(UUID(sender))
            # One's own come back, too: the task that made the change may have died in between.
            self._tell(topic, values)
        if wants_ack and sender != self._hex:
            acks.setdefault(sender, []).append(number)

    def _take_ack(self, payload: str) -> None:
        peer, *numbers = payload.split(" ")
        for number in map(int, numbers):
            seen = [*self._earlier.get(number, ())]
            if number in self._pending:
                seen.append(self._pending[number])
            for pending in seen:
                pending.acked.add(UUID(peer))

    def _tell(self, topic: str, values: list[Any]) -> None:
        self.changes += 1
        for listener in self._subscribers.get(topic, ()):
            listener(*values)

    async def _greet(self) -> None:
        while not self._is_greeted:
            # An acknowledgement may have been lost with the listener: this one makes up for it.
            earlier = [row for row in self._pending.values() if row.peers is not None]
            number = self._number + 1
            self._earlier = {number: earlier}
            try:
                async with self.change() as change:
                    change.announce(HELLO)
            except DatabaseAway:
                await asyncio.sleep(RETRY_S)
            else:
                self._is_greeted = True
                for pending in earlier:
                    pending.is_greeted = True
        await self._wake()

    def _lose(self) -> None:
        self._lease_until = 0.0
        self._is_greeted = False
        if self._greeting is not None:
            self._greeting.cancel()
        self._forget()

    def _forget(self) -> None:
        self.changes += 1
        for forget in self._on_loss:
            forget()

    async def _wake(self) -> None:
        async with self._news:
            self._news.notify_all()


def _ack_channel(brain_hex: str) -> str:
    return f"{CHANNEL}_{brain_hex}"


def _clock() -> float:
    # Unlike the monotonic clock, it goes on while the machine sleeps: so do leases.
    return time.clock_gettime(CLOCK)
