"""Hosts that are buckets': proved, asked for, missed, taken away.

Announced topic: ``hosts``, by whoever changes one. All of them are remembered together, so that a
host that is nobody's costs no look into the database, however many of them are asked for.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from edgecache.brain.database import Database
from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.errors import HostTaken, NoSuchBucket, NoSuchHost
from edgecache.brain.json_errors import StateConflict
from edgecache.brain.s3.requests import host_name
from platform_site.lib.hostnames import DOMAIN

TOPIC: Final = "hosts"
# A domain's length at most (RFC 1035 §2.3.4), and how many names are remembered.
NAME_LIMIT: Final = 253
NAMES_KEPT: Final = 1024
# Of a bucket.
MOST: Final = 20
# Of one round of looking at records again.
ROUND: Final = 100
AGAIN_AFTER_HOURS: Final = 20
# A zone that is being moved loses its record for a while.
LAPSES_AFTER_DAYS: Final = 3

LIST: Final = (
    "SELECT h.host, h.proved_at, h.gone_since FROM brain_host h"
    " JOIN brain_bucket b ON b.id = h.bucket_id"
    " WHERE b.organization_id = %s AND b.environment_pk = %s AND b.id = %s"
    ' ORDER BY h.host COLLATE "C"'
)
# Held against the bucket's removal, and against others that count.
BUCKET: Final = (
    "SELECT id FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s AND id = %s"
    " FOR NO KEY UPDATE"
)
COUNT: Final = "SELECT count(*) AS held FROM brain_host WHERE bucket_id = %s AND host <> %s"
OTHERS: Final = (
    "SELECT h.host, b.organization_id, b.name AS bucket FROM brain_host h"
    " JOIN brain_bucket b ON b.id = h.bucket_id WHERE h.host = %s AND b.id <> %s FOR UPDATE OF h"
)
# What another bucket has stays its own while its record is there.
PROVE: Final = (
    "INSERT INTO brain_host AS h (host, bucket_id, token) VALUES (%s, %s, %s)"
    " ON CONFLICT (host) DO UPDATE SET bucket_id = EXCLUDED.bucket_id, token = EXCLUDED.token,"
    " checked_at = now(), gone_since = NULL,"
    " proved_at = CASE WHEN h.bucket_id = EXCLUDED.bucket_id THEN h.proved_at ELSE now() END"
    " WHERE h.bucket_id = EXCLUDED.bucket_id OR h.token <> ALL(%s)"
    " RETURNING h.host, h.proved_at, h.gone_since"
)
REMOVE: Final = (
    "DELETE FROM brain_host h USING brain_bucket b WHERE b.id = h.bucket_id"
    " AND b.organization_id = %s AND b.environment_pk = %s AND b.id = %s AND h.host = %s"
)
DUE: Final = (
    "SELECT host, token FROM brain_host WHERE checked_at < now() - make_interval(hours => %s)"
    " ORDER BY checked_at LIMIT %s"
)
THERE: Final = (
    "UPDATE brain_host SET checked_at = now(), gone_since = NULL WHERE token = ANY(%s::text[])"
)
GONE: Final = (
    "UPDATE brain_host SET checked_at = now(), gone_since = coalesce(gone_since, now())"
    " WHERE token = ANY(%s::text[])"
)
UNANSWERED: Final = "UPDATE brain_host SET checked_at = now() WHERE token = ANY(%s::text[])"
LAPSE: Final = (
    "DELETE FROM brain_host h USING brain_bucket b WHERE b.id = h.bucket_id"
    " AND h.token = ANY(%s::text[]) AND h.gone_since < now() - make_interval(days => %s)"
    " RETURNING h.host, b.organization_id, b.name AS bucket"
)


@dataclass(frozen=True, slots=True)
class HostInfo:
    """A bucket's host. gone_since: when its record was first missed, None while it is there."""

    host: str
    proved_at: datetime
    gone_since: datetime | None


@dataclass(frozen=True, slots=True)
class LapsedHost:
    """A host that its bucket has no more."""

    host: str
    organization_id: int
    bucket: str


class Hosts:
    """Who has which host; every brain knows of a change when it returns."""

    def __init__(
        self, database: Database, coherence: Coherence, s3_domains: tuple[str, ...]
    ) -> None:
        """s3_domains: names of the object API, which are no bucket's, nor is what is below them."""
        self._database = database
        self._coherence = coherence
        self._s3_domains = s3_domains
        self._known: dict[str, int] | None = None
        self._loading: asyncio.Task[dict[str, int]] | None = None
        self._marks = 0
        # Every request asks, and most of them with one of a few names.
        self._judged: Callable[[str], bool] = lru_cache(NAMES_KEPT)(self._judge)
        coherence.subscribe(TOPIC, self._forget)
        coherence.on_loss(self._forget)

    def may_be(self, host: str) -> bool:
        """Tell whether a name can be a bucket's: a domain in lower case, and not the object API."""
        return len(host) <= NAME_LIMIT and self._judged(host)

    def _judge(self, host: str) -> bool:
        own = any(host == name or host.endswith(f".{name}") for name in self._s3_domains)
        return not own and DOMAIN.fullmatch(host) is not None

    def names_none(self, authority: str) -> bool:
        """Tell that a Host header names no bucket; False, too, where the database must be asked."""
        host = host_name(authority)
        if self._known is not None and self._coherence.is_current:
            return host not in self._known
        return not self.may_be(host)

    async def bucket_id(self, authority: str) -> int | None:
        """Give the bucket whose host a Host header names, None for any other.

        Raises DatabaseAway.
        """
        host = host_name(authority)
        if self._known is not None and self._coherence.is_current:
            return self._known.get(host)
        if not self.may_be(host):
            return None
        if not self._coherence.is_current:
            sql = "SELECT bucket_id FROM brain_host WHERE host = %s"
            row = await self._database.one(sql, [host])
            return None if row is None else int(row.bucket_id)
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
            self._loading.add_done_callback(self._loaded)
        # One asker's leaving must not take the answer from the others.
        return (await asyncio.shield(self._loading)).get(host)

    async def of(self, tenant: Tenant, bucket_id: int) -> list[HostInfo]:
        """Give a bucket's hosts by name; none for a bucket that is not the tenant's.

        Raises DatabaseAway.
        """
        rows = await self._database.all(
            LIST, [tenant.organization_id, tenant.environment_pk, bucket_id]
        )
        return [HostInfo(*row) for row in rows]

    async def prove(
        self, tenant: Tenant, bucket_id: int, host: str, *, token: str, seen: list[str]
    ) -> tuple[HostInfo, LapsedHost | None]:
        """Give a host to a bucket, whose token was seen in its DNS a moment ago.

        seen: all tokens that were. Another bucket's host goes over when its own is not among them;
        then it is told, too, who has it no more.
        Raises NoSuchBucket, HostTaken, NotPossible, DatabaseAway.
        """
        async with self._coherence.change() as change:
            whose = [tenant.organization_id, tenant.environment_pk, bucket_id]
            if await change.one(BUCKET, whose) is None:
                raise NoSuchBucket
            count = await change.one(COUNT, [bucket_id, host])
            if count is None or count.held >= MOST:
                raise StateConflict(f"A bucket has at most {MOST} hosts.")
            other = await change.one(OTHERS, [host, bucket_id])
            row = await change.one(PROVE, [host, bucket_id, token, seen])
            if row is None:
                raise HostTaken
            change.announce(TOPIC)
        return HostInfo(*row), None if other is None else LapsedHost(*other)

    async def remove(self, tenant: Tenant, bucket_id: int, host: str) -> None:
        """Take a host from its bucket.

        Raises NoSuchHost, DatabaseAway.
        """
        async with self._coherence.change() as change:
            whose = [tenant.organization_id, tenant.environment_pk, bucket_id]
            if not await change.run(REMOVE, [*whose, host]):
                raise NoSuchHost
            change.announce(TOPIC)

    async def due(self) -> list[tuple[str, str]]:
        """Give hosts whose records are to be looked at again, each with its token.

        Raises DatabaseAway.
        """
        rows = await self._database.all(DUE, [AGAIN_AFTER_HOURS, ROUND])
        return [(row.host, row.token) for row in rows]

    async def looked_at(
        self, *, there: list[str], gone: list[str], unanswered: list[str]
    ) -> list[LapsedHost]:
        """Note which records were there, by their tokens; give what is lost for good.

        unanswered: nobody said whether they are there, which is no absence. Raises DatabaseAway.
        """
        async with self._coherence.change() as change:
            await change.run(THERE, [there])
            await change.run(GONE, [gone])
            await change.run(UNANSWERED, [unanswered])
            lapsed = await change.all(LAPSE, [gone, LAPSES_AFTER_DAYS])
            if lapsed:
                change.announce(TOPIC)
        return [LapsedHost(*row) for row in lapsed]

    async def _load(self) -> dict[str, int]:
        marks = self._marks
        rows = await self._database.all("SELECT host, bucket_id FROM brain_host")
        known = {row.host: row.bucket_id for row in rows if self.may_be(row.host)}
        if self._coherence.is_current and marks == self._marks:
            self._known = known
        return known

    def _loaded(self, loading: asyncio.Task[dict[str, int]]) -> None:
        if self._loading is loading:
            self._loading = None
        if not loading.cancelled():
            # Looked at, so that a failure that nobody waits for is not an unheard one.
            loading.exception()

    def _forget(self) -> None:
        self._marks += 1
        self._known = None
        # Who asks from now on must not be told what was read before.
        self._loading = None
