"""Places at a store, shared by organization: what a store is asked to do at once."""

from typing import Final

from edgecache.brain.errors import Overloaded
from edgecache.runtime.shares import Shares

# An organization gets two thirds, one of its buckets half.
SPARE: Final = 0.5
# As long as there may be running requests, and for as long as their clients wait.
WAITING: Final = 16_384
WAIT_S: Final = 20.0


def places(limit: int) -> Shares:
    """Return places whose excess waits for a while, and is then refused with Overloaded.

    Writing and reading have their own: a large body takes its time, a request to read does not.
    """
    return Shares(limit, refusal=Overloaded, spare=SPARE, queue=WAITING, wait_s=WAIT_S)
