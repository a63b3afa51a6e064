"""The interface of origin drivers: requests and responses."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from edgecache.brain.core.values import (
    Conditions,
    KeyPage,
    Name,
    ObjectVersion,
    Span,
    StagedFile,
    WrittenFields,
)
from edgecache.protocol.ranges import part_of_any

# Takes status and fields of an interim response (1xx).
TakeInterim = Callable[[int, Sequence[tuple[str, str]]], None]


@dataclass(frozen=True, slots=True)
class OriginRequest:
    """What to send to an origin. Only HTTP origins get more than method and ranged.

    method: GET or HEAD.
    ranged: Range, and maybe If-Range, for a part only.
    headers: for the origin (conditions, and the client's that are in the key).
    path: the key as the client spelled it in its URL, None to encode the key.
    query: of the URL, without the question mark.
    takes_any_status: return every response; otherwise follow redirects and treat all but 200 as
    errors.
    take_interim: called with what the origin sends before its response.
    """

    headers: Sequence[tuple[str, str]] = ()
    path: str | None = None
    query: str = ""
    takes_any_status: bool = False
    method: str = "GET"
    ranged: tuple[tuple[str, str], ...] = ()
    take_interim: TakeInterim | None = None

    @property
    def is_head(self) -> bool:
        return self.method == "HEAD"


PLAIN: Final = OriginRequest()


def ranged_of(wanted: str, condition: str) -> tuple[tuple[str, str], ...]:
    """Return the fields of a request for a part; none for the whole.

    wanted, condition: a client's Range and If-Range.
    """
    text = wanted and part_of_any(wanted)
    if not text:
        return ()
    return (("range", text), ("if-range", condition)) if condition else (("range", text),)


@dataclass(frozen=True, slots=True)
class OriginResponse:
    """An origin's response to a GET or HEAD.

    status: 200, unless the caller takes any. size: None where the origin does not say. part: what
    the body has of these bytes, if not all (the status was 206). etag: without quotes. raw: its
    header fields, for RFC 9111 (HTTP origins). body: its bytes, as they come; it raises
    OriginFailed when they end early and OriginTimeout when they stall.
    is_complete: False if the body's end looks like a broken connection; before the end, if nothing
    marks it.
    """

    status: int
    size: int | None
    etag: str
    content_type: str
    last_modified: datetime
    headers: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    raw: Sequence[tuple[str, str]] = ()
    is_complete: Callable[[], bool] = lambda: True
    body: AsyncIterator[bytes] | None = None
    part: Span | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a PUT. etag: without quotes."""

    etag: str
    last_modified: datetime


class Driver(Protocol):
    """An origin of one bucket; keys are the bucket's.

    Every method raises OriginError, and KeyRefused for a key that the origin cannot hold.
    """

    def get(
        self, key: str, request: OriginRequest = PLAIN
    ) -> AbstractAsyncContextManager[OriginResponse]:
        """Get an object, or its head alone; the body is read inside the block."""
        ...

    async def head(self, key: str) -> OriginResponse:
        """Get an object's metadata."""
        ...

    async def put(
        self,
        key: str,
        staged: StagedFile,
        fields: WrittenFields,
        conditions: Conditions,
    ) -> WriteResult:
        """Write an object. Raises PreconditionFailed."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, ignoring absent ones."""
        ...

    async def list(self, prefix: str, start_after: str, delimiter: str, limit: int) -> KeyPage:
        """Return a page of keys."""
        ...


def version_at(
    name: Name,
    response: OriginResponse,
    *,
    variant: str | None = None,
    http: Mapping[str, Any] | None = None,
) -> ObjectVersion:
    """Return the version that an origin's header describes; its hash is not known."""
    bucket_id, key, asked = name
    return ObjectVersion(
        bucket_id,
        key,
        asked if variant is None else variant,
        0,
        b"",
        -1 if response.size is None else response.size,
        response.etag,
        response.content_type,
        response.headers,
        response.metadata,
        {},
        (),
        response.last_modified,
        http or {},
        datetime.now(UTC),
    )
