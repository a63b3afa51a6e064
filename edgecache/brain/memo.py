"""What was made of a value before, found again by the value's identity."""

from collections.abc import Callable
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

V = TypeVar("V")
P = ParamSpec("P")
M = TypeVar("M")

# With more values than these in turn, each is made anew.
REMEMBERED: Final = 1024


class Memo(Generic[V, P, M]):
    """Remembers what a function makes of immutable values that have no hash, or a slow one."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[Concatenate[V, P], M]) -> None:
        """make: gives the same for the same value, and nobody changes that afterwards."""
        self._make = make
        self._known: dict[int, tuple[V, M]] = {}

    def __call__(self, value: V, *args: P.args, **kwargs: P.kwargs) -> M:
        """Return what is made of the value; the rest of the arguments follow from it."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        made = self._make(value, *args, **kwargs)
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        # The value is kept beside: no other one can have its identity meanwhile.
        self._known[id(value)] = (value, made)
        return made
