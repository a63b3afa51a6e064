"""A function that a lower app calls and a higher app provides, in ``AppConfig.ready()``.

Where several apps add functions, the lower app has a list, and each app appends to it there.
"""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Provided(Generic[P, R]):
    """A function of a higher app. name: for the error of a call before it is provided."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._function: Callable[P, R] | None = None

    def provide(self, function: Callable[P, R]) -> None:
        """Set the function."""
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function. Raises RuntimeError if no installed app provides it."""
        if self._function is None:
            raise RuntimeError(f"No installed app provides {self._name}.")
        return self._function(*args, **kwargs)
