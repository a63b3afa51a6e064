"""A decision about an answer, apart from its execution: a mover carries it out.

Named tuples, here and in what a request is read into: several are made for each request, which
takes a frozen dataclass twice as long.
"""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID


class Source(NamedTuple):
    """A worker that holds the bytes: where a mover reads them.

    endpoint: base URL, as ``http://127.0.0.1:9101``.
    """

    node_id: UUID
    endpoint: str


class Span(NamedTuple):
    """Bytes ``start`` to ``start + length - 1`` of a blob."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose traffic it is: for tickets, usage and limits."""

    organization_id: int
    environment_pk: int


class Delivery(NamedTuple):
    """Answer with these bytes of this blob, from the first of the sources that gives them right.

    sources: nearest first; a failed one is reported to the nodes' health and the next one tried,
    then the brain's own copy and the origin (``fills.reopen``), without the client noticing.
    is_verified: release only what was checked against the manifest's digests.
    is_hit: for the metrics: the answer did not need the origin. crc32: of the whole blob, unsigned;
    None where it is not known.
    """

    tenant: Tenant
    bucket_id: int
    key: str
    generation: int
    sha256: bytes
    size: int
    span: Span
    status: int
    headers: list[tuple[str, str]]
    sources: tuple[Source, ...] = ()
    is_verified: bool = False
    is_hit: bool = True
    sends_body: bool = True
    crc32: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a blob whose hash is known."""
        return self.span.start == 0 and self.span.length == self.size and bool(self.sha256)
