"""An object opened for reading, complete or still being fetched."""

from collections.abc import AsyncIterator
from typing import Protocol

from edgecache.brain.core.values import BucketInfo, ObjectVersion, Span
from edgecache.brain.objects.shared_fetch import SharedFetch


class Source(Protocol):
    """Where the bytes of a complete version come from."""

    def reopen(
        self, bucket: BucketInfo, found: ObjectVersion, span: Span
    ) -> AsyncIterator[bytes]: ...


class OpenObject:
    """A version opened for reading, complete or still being fetched.

    version: its ``sha256`` is empty while it is being fetched.
    is_hit: no origin was asked.
    fetch: the source of its bytes; None for a hit.
    """

    def __init__(
        self,
        source: Source,
        bucket: BucketInfo,
        found: ObjectVersion,
        fetch: SharedFetch | None = None,
    ) -> None:
        self.version = found
        self.is_hit = fetch is None
        self.fetch = fetch
        self._source = source
        self._bucket = bucket

    def covers(self, span: Span) -> bool:
        """True if it has these bytes: all versions do, unless the origin sent a part."""
        part = None if self.fetch is None else self.fetch.part
        if part is None or not span.length:
            return True
        return part.start <= span.start and span.start + span.length <= part.start + part.length

    def body(self, span: Span | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes of a span, or all of them.

        Raises OriginError where they end too early; the caller then cuts the connection.
        """
        if self.fetch is not None and not self.version.sha256:
            return self.fetch.body(span)
        whole = Span(0, self.version.size)
        return self._source.reopen(self._bucket, self.version, whole if span is None else span)

    async def whole(self) -> ObjectVersion:
        """Wait for the last byte; return the version with its size, and its hash if stored.

        Raises OriginError.
        """
        if self.fetch is not None and not self.version.sha256:
            await self.fetch.wait_until_whole()
            self.version = self.fetch.final_version(self.version)
        return self.version
