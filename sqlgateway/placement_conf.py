"""Settings of where environments' databases are, and how large they may be."""

from dataclasses import dataclass
from typing import Annotated, Final

from common.settings.table import Integer

MIB: Final = 2**20


# Without slots: a class inherits from several tables only if at most one has them.
@dataclass(frozen=True, kw_only=True)
class PlacementSettings:
    """Moves, clones, restores and the disk quota; a part of SqlSettings."""

    copy_timeout_s: Annotated[
        int,
        Integer(
            "ZSQL_COPY_TIMEOUT_SECS",
            "Longest copy of one database, in a move, a clone or a restore.",
            default=3_600,
            unit="seconds",
            minimum=10,
            maximum=604_800,
        ),
    ]
    move_wait_ms: Annotated[
        int,
        Integer(
            "ZSQL_MOVE_WAIT_MS",
            "Longest wait of an SQL request for a database that is being moved.",
            default=3_000,
            unit="milliseconds",
            minimum=0,
            maximum=60_000,
        ),
    ]
    retired_keep_hours: Annotated[
        int,
        Integer(
            "ZSQL_RETIRED_KEEP_HOURS",
            "How long the old database is kept after a move or a restore.",
            default=24,
            unit="hours",
            maximum=8_760,
        ),
    ]
    disk_limit_bytes: Annotated[
        int,
        Integer(
            "ZSQL_DISK_LIMIT_BYTES",
            "Disk of one environment's database; `manage.py setquota` gives an organization "
            "its own limit.",
            default=10 * 1024 * MIB,
            unit="bytes",
            minimum=64 * MIB,
            maximum=2**50,
        ),
    ]
