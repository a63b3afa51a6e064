"""How many brains share this machine, and what is limited for all of them together."""

from dataclasses import dataclass
from typing import Final

from common.settings.table import (
    integer,
)

# To the database.
CONNECTIONS: Final = 8
MIN_CONNECTIONS: Final = 8


def _brains(value: int) -> int:
    return value or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The number of brains of this machine, and limits that are divided among them.

    connections: to the database.
    """

    connections: int = CONNECTIONS

    count: int = integer(
        "ZBRAIN_PROCESSES",
        "Brains on this machine, which have the same ports; each takes its part of what is "
        "limited for the machine. `make run` starts this many. 0 is 1, and in `make run` one for "
        "each processor, four at most.",
        default=0,
        maximum=64,
        parse=_brains,
    )
    index_bytes: int = integer(
        "ZBRAIN_INDEX_MIB",
        "Memory of the directory of a machine's brains.",
        default=1024,
        unit="MiB",
        minimum=1,
        maximum=2**20,
        scale=2**20,
    )
    fills: int = integer(
        "ZBRAIN_FILLS",
        "Concurrent requests of a machine's brains to origins; 0 chooses by the machine's memory "
        "and open files.",
        default=0,
        maximum=100_000,
    )
