"""Whether this web server ends without a successor, so that its clients should use another one."""

from mmap import mmap
from typing import Final

# Shared with the processes that the server forks.
_flag: Final = mmap(-1, 1)


def begin() -> None:
    """Note, in all processes of the server, that it ends."""
    _flag[0] = 1


def has_begun() -> bool:
    """True if the server accepts no more connections and answers what it has."""
    return _flag[0] == 1
