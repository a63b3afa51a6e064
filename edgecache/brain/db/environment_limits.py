"""How many rows of one kind an environment may have: every list of them is one page."""

from typing import Final, Literal

from edgecache.brain.core.errors import LimitReached
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.database import DatabaseTransaction

Table = Literal["brain_bucket", "brain_origin", "brain_accesskey"]

PER_ENVIRONMENT: Final = 1000
NAMES: Final[dict[Table, str]] = {
    "brain_bucket": "buckets",
    "brain_origin": "origins",
    "brain_accesskey": "access keys",
}
# A separate statement, so that the count sees what was committed while this one waited.
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
COUNT: Final = (
    "SELECT count(*) AS rows FROM {table} WHERE organization_id = %s AND environment_pk = %s"
)


async def check(change: DatabaseTransaction, table: Table, tenant: EnvironmentKey) -> None:
    """Check that an environment may have one more row; no other is added before the commit.

    Raises LimitReached.
    """
    await change.run(LOCK, [f"{table} {tenant.organization_id} {tenant.environment_pk}"])
    row = await change.one(COUNT.format(table=table), tenant)
    if row is not None and row.rows >= PER_ENVIRONMENT:
        raise LimitReached(f"An environment has at most {PER_ENVIRONMENT:,} {NAMES[table]}.")
