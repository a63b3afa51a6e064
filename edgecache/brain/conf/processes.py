"""How many processes a brain has, and what they share."""

from dataclasses import dataclass, replace
from typing import Final, Self

from common.settings.table import (
    integer,
)
from edgecache.runtime.resource_limits import processors

# Each has its own directory and caches: more do not help a usual brain.
MAX_DEFAULT_PROCESSES: Final = 4
# To the database.
CONNECTIONS: Final = 8
MIN_CONNECTIONS: Final = 4


def _processes(value: int) -> int:
    return value or min(processors(), MAX_DEFAULT_PROCESSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The number of processes of one brain, and the limits that are divided among them.

    connections: to its database.
    """

    connections: int = CONNECTIONS

    count: int = integer(
        "ZBRAIN_PROCESSES",
        "Processes of one brain, on the same ports; 0 chooses one for each processor, four at "
        "most.",
        default=0,
        maximum=64,
        parse=_processes,
    )
    index_bytes: int = integer(
        "ZBRAIN_INDEX_MIB",
        "Memory of the brain's directory, shared by its processes.",
        default=1024,
        unit="MiB",
        minimum=1,
        maximum=2**20,
        scale=2**20,
    )
    fills: int = integer(
        "ZBRAIN_FILLS",
        "Concurrent requests to origins, shared by the brain's processes; 0 chooses by the "
        "machine's memory and open files.",
        default=0,
        maximum=100_000,
    )

    def of_one(self) -> Self:
        if self.count == 1:
            return self
        return replace(
            self,
            connections=max(MIN_CONNECTIONS, self.connections // self.count),
            index_bytes=self.index_bytes // self.count,
            fills=-(-self.fills // self.count),
        )
