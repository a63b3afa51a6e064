"""Stop a copy whose database grows too large, while it is being filled.

A copy computes what the tenant wants: the materialized view of a function that has been replaced
since may have any number of rows. Quotas measure only databases that are in use.
"""

from collections.abc import Callable

from sqlgateway.databases import quotas
from sqlgateway.databases.copies import CopyFailed
from sqlgateway.models import Database


def size_check(database: Database, limit_bytes: int) -> Callable[[], None]:
    """Return a function that raises CopyFailed if the database is larger, and EngineUnavailable."""

    def check() -> None:
        if quotas.size_of(database) > limit_bytes:
            sentence = f"The copy has become larger than {limit_bytes} bytes."
            raise CopyFailed(sentence, reason=sentence)

    return check


def limit_of_copy(source: Database) -> int:
    """Return how many bytes a copy of a database may have.

    Raises EngineUnavailable.
    """
    quota_bytes = quotas.quota_of(source.organization_id or 0).disk_bytes
    # One over its quota can be moved, too, and a copy may be packed less well.
    return max(quota_bytes, 2 * quotas.size_of(source))
