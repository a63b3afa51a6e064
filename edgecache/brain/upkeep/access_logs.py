"""Access logs of buckets: lines wait in memory and are written as objects of another bucket.

Written every hour, when there are many, and when the brain stops. That is best effort: a crash
loses what waits, and what waits beyond an organization's share of the memory is counted only. A
target that is gone or full costs the lines, never a request.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

import structlog

from common.machine.reasons import reason
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import (
    BrainError,
    DatabaseUnavailable,
    NoSuchBucket,
    Overloaded,
    StoreUnavailable,
)
from edgecache.brain.core.share_key import use_share_of_bucket, use_share_of_platform
from edgecache.brain.core.values import BucketInfo, WrittenFields
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.metering.meters import Meters
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.runtime.fair_shares import Shares

log = structlog.get_logger(__name__)

LIMIT_BYTES: Final = 32 * 2**20
# A bucket's lines are written when they are as many.
WRITTEN_BYTES: Final = 2**20
STOP_S: Final = 5.0
# For the list of a bucket's failures.
CAUSE: Final = "access-log-lost"
FIELDS: Final = WrittenFields(content_type="text/plain; charset=utf-8")
# They pass: the lines wait on.
PASSING: Final = (DatabaseUnavailable, StoreUnavailable, Overloaded)

LineOfMissing = Callable[[BucketInfo, int, datetime], bytes]


class LogPlace(NamedTuple):
    """Whose lines, and where they go."""

    bucket_id: int
    target: str
    prefix: str


@dataclass(slots=True)
class WaitingLines:
    """The lines of a place. missing: how many had no room. name: of their object, once chosen."""

    bucket: BucketInfo
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    missing: int = 0
    name: str = ""


class AccessLogs:
    """This brain's lines."""

    def __init__(
        self,
        objects: ObjectCache,
        directory: Directory,
        data_directory: DataDirectory,
        meters: Meters,
        brain_id: UUID,
        *,
        line_of_missing: LineOfMissing,
    ) -> None:
        """line_of_missing: the line that says how many are missing."""
        self._objects = objects
        self._directory = directory
        self._data_directory = data_directory
        self._meters = meters
        self._line_of_missing = line_of_missing
        self._shares = Shares(LIMIT_BYTES, refusal=Overloaded)
        self._waiting: dict[LogPlace, WaitingLines] = {}
        self._tasks = BackgroundTasks()
        self._suffix = brain_id.hex[-8:].upper()
        self._written = 0

    async def stop(self) -> None:
        """Write what waits, for a few seconds at most."""
        try:
            async with asyncio.timeout(STOP_S):
                await self._tasks.finish()
                await self.write()
        except TimeoutError:
            await self._tasks.stop()
        for place, waiting in self._waiting.items():
            self._note_loss(place, waiting, "stopped")

    def add(self, bucket: BucketInfo, line: bytes) -> None:
        """Keep the line of a request to a bucket with a log."""
        place = LogPlace(bucket.id, bucket.log_bucket, bucket.log_prefix)
        waiting = self._waiting.get(place)
        if waiting is None:
            waiting = self._waiting[place] = WaitingLines(bucket)
        if not self._shares.try_take(_share_key(bucket), len(line)):
            waiting.missing += 1
            return
        waiting.lines.append(line)
        waiting.size += len(line)
        # What could not be written waits for the hour.
        if waiting.size >= WRITTEN_BYTES and not waiting.name:
            self._tasks.add(self._write(place, self._waiting.pop(place)))

    async def write(self) -> None:
        """Write all lines. What cannot be written is logged and noted for the bucket's owner."""
        try:
            for place in [*self._waiting]:
                # They may have become many meanwhile, which are written by a task.
                waiting = self._waiting.pop(place, None)
                if waiting is not None:
                    await self._write(place, waiting)
                    use_share_of_platform()
        finally:
            use_share_of_platform()

    async def _write(self, place: LogPlace, waiting: WaitingLines) -> None:
        now = datetime.now(UTC)
        if not waiting.name:
            self._written += 1
            waiting.name = (
                f"{place.prefix}{now:%Y-%m-%d-%H-%M-%S}-{self._suffix}{self._written:08X}"
            )
        try:
            await self._put(place, waiting, now)
        except PASSING as exc:
            log.warning("access_log_put_off", bucket_id=place.bucket_id, reason=reason(exc))
            self._put_back(place, waiting)
        except asyncio.CancelledError:
            self._put_back(place, waiting)
            raise
        except Exception as exc:
            if not isinstance(exc, BrainError | OSError):
                log.exception("access_log_failed", bucket_id=place.bucket_id)
            self._note_loss(place, waiting, reason(exc))
            self._release(waiting)
        else:
            self._release(waiting)

    async def _put(self, place: LogPlace, waiting: WaitingLines, now: datetime) -> None:
        target = await self._directory.bucket(waiting.bucket.tenant, place.target)
        if target is None or target.origin_id is not None or target.id == place.bucket_id:
            raise NoSuchBucket
        use_share_of_bucket(target)
        data = b"".join(waiting.lines)
        if waiting.missing:
            data += self._line_of_missing(waiting.bucket, waiting.missing, now)
        manifest = await self._data_directory.run(manifest_of, data)
        body = BufferedBody(data, manifest, release=lambda: None)
        await self._objects.put(target, waiting.name, body, FIELDS)

    def _put_back(self, place: LogPlace, waiting: WaitingLines) -> None:
        """Let lines wait on, before those that came meanwhile; their object keeps its name."""
        later = self._waiting.get(place)
        if later is not None:
            waiting.lines += later.lines
            waiting.size += later.size
            waiting.missing += later.missing
        self._waiting[place] = waiting

    def _release(self, waiting: WaitingLines) -> None:
        self._shares.give_back(_share_key(waiting.bucket), waiting.size)

    def _note_loss(self, place: LogPlace, waiting: WaitingLines, why: str) -> None:
        lines = len(waiting.lines) + waiting.missing
        log.warning("access_log_lost", bucket_id=place.bucket_id, lines=lines, reason=why)
        self._meters.record_failure(place.bucket_id, CAUSE)


def _share_key(bucket: BucketInfo) -> tuple[int, int]:
    return bucket.tenant.organization_id, bucket.id
