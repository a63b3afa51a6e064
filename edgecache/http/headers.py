"""Header fields of a message, as they were sent."""

from collections.abc import Iterable, Iterator


class Headers:
    """Fields in their order; names are lower case.

    Values are decoded byte for byte (latin-1), so that a signature over them can be checked.
    """

    __slots__ = ("_first", "_pairs")

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = list(pairs)
        # The first of several headers with one name is used.
        self._first = dict(reversed(self._pairs))

    def __contains__(self, name: object) -> bool:
        return name in self._first

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, name: str) -> str:
        return self._first[name]

    @property
    def are_distinct(self) -> bool:
        """True if no name occurs twice."""
        return len(self._first) == len(self._pairs)

    def get(self, name: str, default: str = "") -> str:
        """Return the first field of this name."""
        return self._first.get(name, default)

    def get_all(self, name: str) -> list[str]:
        """Return every field of this name."""
        if self.are_distinct:
            return [self._first[name]] if name in self._first else []
        return [value for given, value in self._pairs if given == name]

    def items(self) -> list[tuple[str, str]]:
        """Return all fields in their order."""
        return self._pairs


def lossless(value: str) -> str:
    """Return a value that was decoded byte for byte as text that is encoded to the same bytes.

    As UTF-8 with ``surrogateescape``, in which heads are written.
    """
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # It is text already: an earlier release has stored some so.
        return value


def decoded(value: str) -> str:
    """Return a value as UTF-8 if its bytes are valid UTF-8, otherwise unchanged."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
