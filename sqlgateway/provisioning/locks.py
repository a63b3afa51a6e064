"""One process at a time moves, clones or restores a database; a crash releases it."""

from contextlib import AbstractContextManager

from platform_site.lib import locks
from platform_site.lib.locks import Busy
from sqlgateway.models import Database

__all__ = ["Busy", "exclusive"]


def exclusive(database: Database) -> AbstractContextManager[None]:
    """Hold the lock of a database while the block runs, which may take hours.

    Raises Busy on entering.
    """
    return locks.exclusive(f"sqlgateway database {database.pk}")
