"""A memo of results by the identity of their argument."""

from collections.abc import Callable
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

A = TypeVar("A")
P = ParamSpec("P")
M = TypeVar("M")

# Beyond these the memo is emptied.
MAX_ENTRIES: Final = 1024


class Memo(Generic[A, P, M]):
    """Remembers a function's results for immutable values without a hash, or with a slow one."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[Concatenate[A, P], M]) -> None:
        """make: returns an equal result for the same value; results are never modified."""
        self._make = make
        self._known: dict[int, tuple[A, M]] = {}

    def __call__(self, value: A, *args: P.args, **kwargs: P.kwargs) -> M:
        """Return the value's result; the other arguments follow from the value."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        made = self._make(value, *args, **kwargs)
        if len(self._known) >= MAX_ENTRIES:
            self._known.clear()
        # The value is kept as well, so that no other one can get its identity.
        self._known[id(value)] = (value, made)
        return made
