"""What a caller asks for, as a value."""

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

    params: None sends it by the simple protocol, where it may hold several statements; otherwise
    the extended one, which takes exactly one.
    """

    text: str
    params: list[bytes | None] | None = None
    offset: int = 0

    @property
    def sent(self) -> bytes:
        """The bytes for the server."""
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
        """Whether the gateway puts BEGIN and COMMIT around the pieces."""
        return self.is_batch or self.isolation is not None

    @property
    def begin(self) -> bytes:
        """The statement that opens it."""
        level = f" ISOLATION LEVEL {self.isolation.upper()}" if self.isolation else ""
        return f"BEGIN{level}".encode()


def explained(text: str) -> tuple[str, int]:
    """Give the text that explains a statement, and how many characters come before it."""
    return EXPLAIN + text, len(EXPLAIN)
