"""A validated request as a value."""

from dataclasses import dataclass
from typing import Final, Literal

from sqlgateway.formats.column_types import NumericAs
from sqlgateway.formats.results import RowsAs

Isolation = Literal["read committed", "repeatable read", "serializable"]
ISOLATIONS: Final = ("read committed", "repeatable read", "serializable")
EXPLAIN: Final = "EXPLAIN (FORMAT JSON) "


@dataclass(frozen=True, slots=True)
class Piece:
    """One text for the server.

    params: None uses the simple protocol, where the text may hold several statements; otherwise
    the extended one, which accepts exactly one.
    """

    text: str
    params: list[bytes | None] | None = None
    offset: int = 0

    @property
    def sent(self) -> bytes:
        """The bytes to send."""
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """A validated request.

    pieces: one, or with ``is_batch`` any number that run as one transaction.
    """

    pieces: tuple[Piece, ...]
    is_batch: bool = False
    rows: RowsAs = "objects"
    numeric: NumericAs = "string"
    read_only: bool = False
    isolation: Isolation | None = None
    timeout_ms: int = 30_000
    max_rows: int = 10_000

    @property
    def opens_transaction(self) -> bool:
        """True if the gateway puts BEGIN and COMMIT around the pieces."""
        return self.is_batch or self.isolation is not None

    @property
    def begin(self) -> bytes:
        """The statement that opens the transaction."""
        level = f" ISOLATION LEVEL {self.isolation.upper()}" if self.isolation else ""
        return f"BEGIN{level}".encode()


def explained(text: str) -> tuple[str, int]:
    """Return the text that explains a statement, and the number of characters before it."""
    return EXPLAIN + text, len(EXPLAIN)
