"""Host names of buckets: proof, look-up, re-checks, removal.

Announced topic: ``hosts``, with each change. All hosts are remembered together, so that an
unknown host costs no query, however many of them are requested.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from common.web.hostnames import DOMAIN
from edgecache.brain.core.errors import HostTaken, NoSuchBucket, NoSuchHost, StateConflict
from edgecache.brain.core.values import EnvironmentKey, host_name
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.coherent_cache import CoherentCache
from edgecache.brain.db.database import BrainDatabase

TOPIC: Final = "hosts"
# The maximum length of a domain (RFC 1035 §2.3.4); the number of remembered look-ups.
NAME_LIMIT: Final = 253
NAMES_KEPT: Final = 1024
# Maximum hosts of a bucket.
MAX_HOSTS_PER_BUCKET: Final = 20
# Hosts in one round of DNS checks.
ROUND: Final = 100
AGAIN_AFTER_HOURS: Final = 20
# The record may be missing for a while when a zone is moved.
LAPSES_AFTER_DAYS: Final = 3

# Those of HostInfo.
COLUMNS: Final = "h.host, h.proved_at, h.gone_since"
LIST: Final = (
    "SELECT {columns} FROM brain_host h"
    " JOIN brain_bucket b ON b.id = h.bucket_id"
    " WHERE b.organization_id = %s AND b.environment_pk = %s AND b.id = %s"
    ' ORDER BY h.host COLLATE "C"'
).replace("{columns}", COLUMNS)
# Locked against the bucket's deletion and against concurrent counts.
BUCKET: Final = (
    "SELECT id FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s AND id = %s"
    " FOR NO KEY UPDATE"
)
COUNT: Final = "SELECT count(*) AS held FROM brain_host WHERE bucket_id = %s AND host <> %s"
OTHERS: Final = (
    "SELECT h.host, b.organization_id, b.name AS bucket FROM brain_host h"
    " JOIN brain_bucket b ON b.id = h.bucket_id WHERE h.host = %s AND b.id <> %s FOR UPDATE OF h"
)
# Another bucket keeps its host while its record exists.
PROVE: Final = (
    "INSERT INTO brain_host AS h (host, bucket_id, token) VALUES (%s, %s, %s)"
    " ON CONFLICT (host) DO UPDATE SET bucket_id = EXCLUDED.bucket_id, token = EXCLUDED.token,"
    " checked_at = now(), gone_since = NULL,"
    " proved_at = CASE WHEN h.bucket_id = EXCLUDED.bucket_id THEN h.proved_at ELSE now() END"
    " WHERE h.bucket_id = EXCLUDED.bucket_id OR h.token <> ALL(%s)"
    " RETURNING {columns}"
).replace("{columns}", COLUMNS)
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
    """A bucket's host. gone_since: since when its record is missing, None if it exists."""

    host: str
    proved_at: datetime
    gone_since: datetime | None


@dataclass(frozen=True, slots=True)
class LapsedHost:
    """A host that its bucket has lost."""

    host: str
    organization_id: int
    bucket: str


class Hosts:
    """The hosts of buckets; all brains see a change when the call returns."""

    def __init__(
        self, database: BrainDatabase, coherence: Coherence, s3_domains: tuple[str, ...]
    ) -> None:
        """s3_domains: the object API's domains; they and their subdomains cannot be a bucket's."""
        self._database = database
        self._coherence = coherence
        self._s3_domains = s3_domains
        self._known: CoherentCache[None, dict[str, int]] = CoherentCache(
            coherence, TOPIC, row_of=lambda _: None
        )
        # Called for every request, mostly with one of a few names.
        self._checked_host: Callable[[str], bool] = lru_cache(NAMES_KEPT)(self._check_host)

    def can_be_bucket_host(self, host: str) -> bool:
        """True if a name may be a bucket's: a domain in lower case, not the object API's."""
        return len(host) <= NAME_LIMIT and self._checked_host(host)

    def _check_host(self, host: str) -> bool:
        own = any(host == name or host.endswith(f".{name}") for name in self._s3_domains)
        return not own and DOMAIN.fullmatch(host) is not None

    def may_name_bucket(self, authority: str) -> bool:
        """False if a Host header certainly names no bucket; True if a look-up is necessary."""
        host = host_name(authority)
        known = self._known.known(None)
        return self.can_be_bucket_host(host) if known is None else host in known

    def known_bucket_id(self, authority: str) -> int | None:
        """Return the bucket of a Host header if it is in memory, and that is current."""
        known = self._known.known(None)
        return None if known is None else known.get(host_name(authority))

    async def bucket_id(self, authority: str) -> int | None:
        """Return the bucket of a Host header, None if it belongs to no bucket.

        Raises DatabaseUnavailable.
        """
        host = host_name(authority)
        if self._known.known(None) is None and not self.can_be_bucket_host(host):
            return None
        if not self._coherence.is_current:
            sql = "SELECT bucket_id FROM brain_host WHERE host = %s"
            row = await self._database.one(sql, [host])
            return None if row is None else int(row.bucket_id)
        known = await self._known.get(None, self._load)
        return None if known is None else known.get(host)

    async def of(self, tenant: EnvironmentKey, bucket_id: int) -> list[HostInfo]:
        """Return a bucket's hosts by name; empty for another tenant's bucket.

        Raises DatabaseUnavailable.
        """
        rows = await self._database.all(LIST, [*tenant, bucket_id])
        return [HostInfo(*row) for row in rows]

    async def prove(
        self, tenant: EnvironmentKey, bucket_id: int, host: str, *, token: str, seen: list[str]
    ) -> tuple[HostInfo, LapsedHost | None]:
        """Add a host to a bucket whose token was seen in the DNS.

        seen: all tokens in the DNS. If another bucket has the host and its token is not among them,
        it loses the host; that loss is returned, too.

        Raises NoSuchBucket, HostTaken, StateConflict, DatabaseUnavailable.
        """
        async with self._coherence.transaction() as change:
            whose = [*tenant, bucket_id]
            if await change.one(BUCKET, whose) is None:
                raise NoSuchBucket
            count = await change.one(COUNT, [bucket_id, host])
            if count is None or count.held >= MAX_HOSTS_PER_BUCKET:
                raise StateConflict(f"A bucket has at most {MAX_HOSTS_PER_BUCKET} hosts.")
            other = await change.one(OTHERS, [host, bucket_id])
            row = await change.one(PROVE, [host, bucket_id, token, seen])
            if row is None:
                raise HostTaken
            change.announce(TOPIC)
        return HostInfo(*row), None if other is None else LapsedHost(*other)

    async def remove(self, tenant: EnvironmentKey, bucket_id: int, host: str) -> None:
        """Remove a host from its bucket. Raises NoSuchHost, DatabaseUnavailable."""
        async with self._coherence.transaction() as change:
            whose = [*tenant, bucket_id]
            if not await change.run(REMOVE, [*whose, host]):
                raise NoSuchHost
            change.announce(TOPIC)

    async def due(self) -> list[tuple[str, str]]:
        """Return hosts whose records are due for a check, each with its token.

        Raises DatabaseUnavailable.
        """
        rows = await self._database.all(DUE, [AGAIN_AFTER_HOURS, ROUND])
        return [(row.host, row.token) for row in rows]

    async def record_check(
        self, *, there: list[str], gone: list[str], unanswered: list[str]
    ) -> list[LapsedHost]:
        """Store the results of a check, by token; return the hosts that were lost.

        unanswered: the DNS gave no answer, which does not count as missing.
        Raises DatabaseUnavailable.
        """
        async with self._coherence.transaction() as change:
            await change.run(THERE, [there])
            await change.run(GONE, [gone])
            await change.run(UNANSWERED, [unanswered])
            lapsed = await change.all(LAPSE, [gone, LAPSES_AFTER_DAYS])
            if lapsed:
                change.announce(TOPIC)
        return [LapsedHost(*row) for row in lapsed]

    async def _load(self) -> dict[str, int]:
        rows = await self._database.all("SELECT host, bucket_id FROM brain_host")
        return {row.host: row.bucket_id for row in rows if self.can_be_bucket_host(row.host)}
