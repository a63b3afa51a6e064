"""Settings of the deletion and the export of organizations."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from common.settings.env import Env
from common.settings.table import (
    integer,
    load,
    text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationSettings:
    """The delay of a deletion, and where exports are and how large."""

    deletion_days: int = integer(
        "ZORGANIZATION_DELETION_DAYS",
        "Time between the request to delete an organization and its deletion, in which any of "
        "its admins can cancel it.",
        default=7,
        unit="days",
        minimum=1,
        maximum=90,
    )
    export_dir: str = text(
        "ZEXPORT_DIR",
        "Folder of organizations' exports; web servers and task workers share it.",
        shown="ZDATA_DIR/exports",
    )
    export_disk_bytes: int = integer(
        "ZEXPORT_DISK_BYTES",
        "Disk space for the exports of all organizations together; when it is used up, no "
        "further export is written.",
        default=50 * 2**30,
        unit="bytes",
        minimum=2**20,
        maximum=2**50,
    )


def read(env: Env, *, data_dir: Path) -> OrganizationSettings:
    """Read the settings. data_dir: has the exports unless ZEXPORT_DIR is set."""
    own: OrganizationSettings = load(OrganizationSettings, env)
    return replace(own, export_dir=own.export_dir or str(data_dir / "exports"))


TABLES: Final = (OrganizationSettings,)
