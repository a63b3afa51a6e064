"""A decision how a request is answered; ``streaming`` carries it out.

Named tuples, here and in the parsed request: several are made for each request, and a frozen
dataclass takes twice as long.
"""

from typing import NamedTuple
from uuid import UUID


class WorkerSource(NamedTuple):
    """A worker that holds the bytes. endpoint: base URL, as ``http://127.0.0.1:9101``."""

    node_id: UUID
    endpoint: str


class Span(NamedTuple):
    """Bytes ``start`` to ``start + length - 1`` of a blob."""

    start: int
    length: int


class EnvironmentKey(NamedTuple):
    """The environment that tickets, usage and limits belong to."""

    organization_id: int
    environment_pk: int


class DeliveryPlan(NamedTuple):
    """Respond with these bytes of this blob, from the first source that sends them correctly.

    sources: nearest first. A source that fails is reported to the nodes' health and the next one is
    asked, then the brain's own copy and the origin; the client notices nothing.
    is_verified: send only bytes that were verified against the manifest's digests.
    is_hit: for the metrics: the response did not need the origin. crc32: of the whole blob,
    unsigned; None where it is not known.
    """

    tenant: EnvironmentKey
    bucket_id: int
    sha256: bytes
    size: int
    span: Span
    status: int
    headers: list[tuple[str, str]]
    sources: tuple[WorkerSource, ...] = ()
    is_verified: bool = False
    is_hit: bool = True
    crc32: int | None = None

    @property
    def is_whole(self) -> bool:
        """True if it is a whole blob with a known hash."""
        return self.span.start == 0 and self.span.length == self.size and bool(self.sha256)

    def headers_with_length(self) -> list[tuple[str, str]]:
        """Return the headers, with the number of bytes that follow them."""
        return [*self.headers, ("content-length", str(self.span.length))]
