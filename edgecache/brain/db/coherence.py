"""Coherence of several brains: PostgreSQL announces each change to all, in commit order.

Every write announces, inside its transaction, what it changed. Each brain listens on a connection
of its own and renews a lease on it twice a second. A brain uses its in-memory caches only while
that lease is valid; one that lost its listener empties them before it uses them again. A write that
must be seen by all returns when every brain with a valid lease has acknowledged it, or when that
lease has expired. A brain that is new, or whose lease had ended, begins with a handshake: it uses
no caches until the others have acknowledged it, and they wait for it from then on. A brain that
waits for long repeats the handshake, because a lost listener loses acknowledgements. A single brain
never waits.
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

from common.machine.reasons import reason
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.db.database import CONNECT_TIMEOUT_S, BrainDatabase, DatabaseTransaction

log = structlog.get_logger(__name__)

CHANNEL: Final = "zonal_brain"
# What a brain may serve from memory after it was cut off, and what writes of others wait for one
# that died. It is that of PostgreSQL's row; a brain counts from before it asked, less the margin.
LEASE_S: Final = 3
# Safety margin of the lease for the drift between PostgreSQL's clock and ours.
MARGIN_S: Final = 1.0
RENEW_S: Final = 0.5
# A renewal that takes longer than the lease is of no use, but its connection may still be.
RENEWAL_LIMIT_S: Final = 4.0
RETRY_S: Final = 0.25
ACK_LIMIT_S: Final = 8.0
# A handshake is repeated after this time, and begun for a change that has waited for this long.
HANDSHAKE_S: Final = 2.0
PATIENCE_S: Final = 1.0
# PostgreSQL refuses a payload of 8,000 bytes.
PAYLOAD_BYTES: Final = 7_500
HANDSHAKE: Final = "hello"
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

Announcement = tuple[Any, ...]
Listener = Callable[..., None]

RENEW: Final = (
    "INSERT INTO brain_braininstance (id, lease_until)"
    " VALUES (%s, clock_timestamp() + make_interval(secs => %s))"
    " ON CONFLICT (id) DO UPDATE SET lease_until = EXCLUDED.lease_until"
)
END: Final = "DELETE FROM brain_braininstance WHERE id = %s"
NOTIFY: Final = "SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) payload"
# Without waiting for the disk: a notification does not survive a crash of PostgreSQL anyway.
ACKNOWLEDGE: Final = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"
LIVING: Final = (
    "SELECT id FROM brain_braininstance WHERE lease_until > clock_timestamp() AND id <> %s"
)


class AnnouncingTransaction(DatabaseTransaction):
    """A transaction that announces what it changes to all brains."""

    __slots__ = ("announcements",)

    def __init__(self, connection: DatabaseTransaction) -> None:
        super().__init__(connection.raw)
        self.announcements: list[Announcement] = []

    def announce(self, topic: str, *values: str | int) -> None:
        """Announce to all brains' subscribers of a topic, after the commit."""
        self.announcements.append((topic, *values))


class Pending:
    """A change that waits for acknowledgements.

    peers: the brains that must acknowledge it, None before the commit.
    peers_unknown: it was committed while this brain had no lease and may not know all peers.
    has_handshake: a handshake has succeeded since, which replaces the acknowledgements.
    since: when it was committed, by ``_clock``.
    """

    __slots__ = ("acked", "has_handshake", "peers", "peers_unknown", "since")

    def __init__(self) -> None:
        self.acked: set[UUID] = set()
        self.peers: frozenset[UUID] | None = None
        self.peers_unknown = False
        self.has_handshake = False
        self.since = 0.0

    def is_seen(self, living: set[UUID]) -> bool:
        """True if every brain that may use its in-memory caches has seen it."""
        if self.has_handshake:
            return True
        return not self.peers_unknown and not (self.peers or frozenset()) & living - self.acked


class Coherence:
    """This brain's listener, lease, announcements and acknowledgements."""

    def __init__(self, database: BrainDatabase, brain_id: UUID) -> None:
        self._database = database
        self._id = brain_id
        self._hex = brain_id.hex
        self._subscribers: dict[str, list[Listener]] = {}
        self._on_loss: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._is_listener_lost = False
        self._lease_until = 0.0
        self._has_handshake = False
        self._number = 0
        self._peers: set[UUID] = set()
        self._pending: dict[int, Pending] = {}
        # Changes committed before a handshake: its acknowledgement covers them.
        self._earlier: dict[int, list[Pending]] = {}
        self._wakeup = asyncio.Condition()
        # Rises with everything that may invalidate an in-memory cache.
        self.changes = 0

    @property
    def is_current(self) -> bool:
        """True if this brain may use its in-memory caches."""
        return self._has_handshake and _clock() < self._lease_until

    @property
    def peers(self) -> frozenset[UUID]:
        """Return the other brains with a valid lease."""
        return frozenset(self._peers)

    @property
    def brain_id(self) -> UUID:
        return self._id

    def subscribe(self, topic: str, listener: Listener) -> None:
        """Call a function with the values of each announcement of a topic."""
        self._subscribers.setdefault(topic, []).append(listener)

    def on_loss(self, forget: Callable[[], None]) -> None:
        """Call a function when announcements may have been missed: it must empty its cache."""
        self._on_loss.append(forget)

    async def start(self) -> None:
        """Start listening, again after each loss; return when current or after two seconds."""
        self._task = asyncio.create_task(self._keep_listening())
        await self.wait_until_current(2.0)

    async def wait_until_current(self, timeout_s: float) -> bool:
        """Wait until the in-memory caches may be used; False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s), self._wakeup:
                await self._wakeup.wait_for(lambda: self.is_current)
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Stop listening and end the lease, so that no brain waits for this one."""
        for task in (self._handshake, self._task):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._lose()
        try:
            await self._database.run(END, [self._id])
        except DatabaseUnavailable:
            log.warning("brain_lease_left", brain_id=str(self._id))

    @asynccontextmanager
    async def transaction(
        self,
        *,
        wait_for_acks: bool = True,
        timeout_s: float = 10.0,
        ack_limit_s: float | None = None,
        is_pipelined: bool = False,
    ) -> AsyncIterator[AnnouncingTransaction]:
        """Run a transaction; at the end it is committed, announced, and seen by all brains.

        wait_for_acks: of the other brains, ACK_LIMIT_S at most unless ack_limit_s says otherwise;
        without them they see it a moment later.
        is_pipelined: see ``BrainDatabase.transaction``.
        Raises DatabaseUnavailable: the change may have happened, so repeating it must be harmless.
        """
        self._number += 1
        number = self._number
        pending = self._pending[number] = Pending()
        try:
            async with self._database.transaction(
                timeout_s=timeout_s, is_pipelined=is_pipelined
            ) as connection:
                change = AnnouncingTransaction(connection)
                yield change
                payloads = self._payloads(change.announcements, number, wants_ack=wait_for_acks)
                if payloads:
                    await change.run(NOTIFY, [CHANNEL, payloads])
            # A brain that starts later reads the committed state; and while the lease is valid no
            # brain has started without a handshake.
            pending.peers = frozenset(self._peers)
            pending.since = _clock()
            pending.peers_unknown = pending.since >= self._lease_until
            for topic, *values in change.announcements:
                self._notify_subscribers(topic, values)
            if wait_for_acks and payloads:
                await self._wait_until_seen(pending, ack_limit_s or ACK_LIMIT_S)
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

    async def _wait_until_seen(self, pending: Pending, limit_s: float) -> None:
        if pending.is_seen(self._peers):
            return
        try:
            async with asyncio.timeout(limit_s), self._wakeup:
                await self._wakeup.wait_for(lambda: pending.is_seen(self._peers))
        except TimeoutError:
            raise DatabaseUnavailable("Another brain did not confirm the change in time.") from None

    # --- listening --------------------------------------------------------------------------

    async def _keep_listening(self) -> None:
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError, TimeoutError, DatabaseUnavailable) as exc:
                if not self._is_listener_lost:
                    self._is_listener_lost = True
                    log.warning("brain_listener_lost", reason=reason(exc))
            except Exception:
                # An announcement that cannot be read may have changed anything: start over.
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
            # Reads that began before LISTEN may have missed an announcement.
            self._forget()
            await self._renew(connection)
            if self._is_listener_lost:
                self._is_listener_lost = False
                log.info("brain_listener_back")
            due = _clock() + RENEW_S
            while True:
                await self._take_in(connection, due - _clock())
                if _clock() >= due:
                    await self._renew(connection)
                    due = _clock() + RENEW_S
                    self._repeat_handshake()

    async def _renew(self, connection: psycopg.AsyncConnection[Any]) -> None:
        begun = _clock()
        async with asyncio.timeout(RENEWAL_LIMIT_S):
            await connection.execute(RENEW, [self._id, LEASE_S])
            living = await (await connection.execute(LIVING, [self._id])).fetchall()
        self._peers = {row[0] for row in living}
        # Announcements before the renewal have arrived with its result; they are processed before
        # the renewal counts, and may include a new brain's handshake.
        await self._take_in(connection, 0)
        if _clock() >= self._lease_until:
            # It had ended: the others may not wait for this brain any more.
            self._has_handshake = False
            self._start_handshake()
        self._lease_until = begun + LEASE_S - MARGIN_S
        await self._wake()

    async def _take_in(self, connection: psycopg.AsyncConnection[Any], timeout_s: float) -> None:
        """Process and acknowledge notifications, waiting for them at most this long."""
        acks: dict[str, list[int]] = {}
        arrived = connection.notifies(timeout=max(timeout_s, 0), stop_after=1)
        async with aclosing(arrived):
            async for notification in arrived:
                if notification.channel == CHANNEL:
                    self._take(notification.payload, acks)
                else:
                    self._take_ack(notification.payload)
        for sender, numbers in acks.items():
            payload = " ".join(map(str, (self._hex, *numbers)))
            await connection.execute(ACKNOWLEDGE, [_ack_channel(sender), payload])
        await self._wake()

    def _take(self, payload: str, acks: dict[str, list[int]]) -> None:
        sender, number, wants_ack, announcements = orjson.loads(payload)
        for topic, *values in announcements:
            if topic == HANDSHAKE and sender != self._hex:
                self._peers.add(UUID(sender))
            # Own announcements count, too: the task that made the change may be cancelled.
            self._notify_subscribers(topic, values)
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

    def _notify_subscribers(self, topic: str, values: list[Any]) -> None:
        self.changes += 1
        for listener in self._subscribers.get(topic, ()):
            listener(*values)

    def _start_handshake(self) -> None:
        if self._handshake is not None:
            self._handshake.cancel()
        self._handshake = asyncio.create_task(self._shake_hands())

    def _repeat_handshake(self) -> None:
        """Repeat the handshake if an acknowledgement is late and may have been lost.

        Another brain's listener was lost when it was announced; or PostgreSQL was frozen: the lease
        expired before the commit, and the listener survived.
        """
        since = _clock() - PATIENCE_S
        late = [row for row in self._pending.values() if row.peers is not None]
        is_running = self._handshake is not None and not self._handshake.done()
        if not is_running and any(row.peers_unknown or row.since < since for row in late):
            self._start_handshake()

    async def _shake_hands(self) -> None:
        while True:
            # Acknowledgements may have been lost with the listener; the handshake's replaces them.
            earlier = [row for row in self._pending.values() if row.peers is not None]
            number = self._number + 1
            self._earlier = {number: earlier}
            try:
                async with self.transaction(ack_limit_s=HANDSHAKE_S) as change:
                    change.announce(HANDSHAKE)
            except DatabaseUnavailable:
                await asyncio.sleep(RETRY_S)
            else:
                self._has_handshake = True
                for pending in earlier:
                    pending.has_handshake = True
                break
        await self._wake()

    def _lose(self) -> None:
        self._lease_until = 0.0
        self._has_handshake = False
        if self._handshake is not None:
            self._handshake.cancel()
        self._forget()

    def _forget(self) -> None:
        self.changes += 1
        for forget in self._on_loss:
            forget()

    async def _wake(self) -> None:
        async with self._wakeup:
            self._wakeup.notify_all()


def _ack_channel(brain_hex: str) -> str:
    return f"{CHANNEL}_{brain_hex}"


def _clock() -> float:
    # Unlike the monotonic clock this one counts while the machine sleeps, as leases do.
    return time.clock_gettime(CLOCK)
