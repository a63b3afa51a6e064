"""The rules of a bucket's lifecycle: as they are stored, what they fit, and when that expires.

Source: AWS, "Lifecycle configuration elements".
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Literal

from edgecache.brain.core.loop_steps import in_steps
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.versions import LIFECYCLE_DIGEST
from edgecache.runtime.bounded_cache import BoundedCache

OF_BUCKET: Final = (
    "SELECT lifecycle FROM brain_bucket"  # noqa: S608 - literals alone
    " WHERE id = %s AND " + LIFECYCLE_DIGEST + " = %s"
)
KEPT_BYTES: Final = 16 * 2**20
RULE_BYTES: Final = 1200

# How a rule was written: a Prefix without a Filter, a Filter with one condition or none, or And.
Form = Literal["prefix", "filter", "and"]


@dataclass(frozen=True, slots=True)
class LifecycleRule:
    """One rule. prefix: None where none was written. greater_bytes, less_bytes: exclusive bounds.

    days: whole days of age. date: of UTC, as ``2026-12-01``. abort_days: of unfinished uploads.
    removes_markers: delete markers without other versions; None if unsaid. noncurrent_days: since a
    newer version came. newer_noncurrent: how many of these stay, the newest ones.
    """

    id: str
    is_enabled: bool
    form: Form
    prefix: str | None
    tags: Mapping[str, str]
    greater_bytes: int | None
    less_bytes: int | None
    days: int | None
    date: str | None
    abort_days: int | None
    removes_markers: bool | None = None
    noncurrent_days: int | None = None
    newer_noncurrent: int | None = None

    @property
    def expires(self) -> bool:
        """True if objects expire by this rule."""
        return self.is_enabled and (self.days is not None or self.date is not None)

    @property
    def may_remove_markers(self) -> bool:
        """True if delete markers without other versions go by this rule."""
        return self.is_enabled and (bool(self.removes_markers) or self.days is not None)

    def fits_marker(self, key: str) -> bool:
        """True if the rule is for a delete marker, which has neither tags nor a size."""
        is_for_all = not self.tags and self.greater_bytes is None and self.less_bytes is None
        return is_for_all and key.startswith(self.prefix or "")

    def fits(self, key: str, size: int, tags: Mapping[str, str]) -> bool:
        """True if the rule is for an object."""
        return (
            key.startswith(self.prefix or "")
            and (self.greater_bytes is None or size > self.greater_bytes)
            and (self.less_bytes is None or size < self.less_bytes)
            and all(tags.get(name) == value for name, value in self.tags.items())
        )

    def expiry_of(self, last_modified: datetime) -> datetime | None:
        """Return when what it fits expires; None if not by this rule."""
        if not self.is_enabled:
            return None
        if self.date is not None:
            return midnight(date.fromisoformat(self.date))
        return None if self.days is None else after_days(last_modified, self.days)


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def after_days(moment: datetime, days: int) -> datetime:
    """Return the next midnight of UTC, whole days after a moment; never less than these days."""
    try:
        return midnight(moment.astimezone(UTC).date() + timedelta(days + 1))
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def older_than(now: datetime, days: int) -> datetime:
    """Return the moment before which ``after_days`` is over."""
    try:
        return midnight(now.astimezone(UTC).date()) - timedelta(days)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def expiry_by(
    rules: Sequence[LifecycleRule],
    key: str,
    *,
    size: int,
    tags: Mapping[str, str],
    last_modified: datetime,
) -> tuple[datetime, str] | None:
    """Return when an object expires first, and the id of that rule."""
    fitting = (rule for rule in rules if rule.expires and rule.fits(key, size, tags))
    moments = [(moment, rule.id) for rule in fitting if (moment := rule.expiry_of(last_modified))]
    return min(moments, default=None)


def stored(rules: Sequence[LifecycleRule]) -> list[dict[str, Any]]:
    """Return rules as JSON, for the bucket's row."""
    return [asdict(rule) for rule in rules]


def loaded(row: Mapping[str, Any]) -> LifecycleRule:
    """Return a rule of a bucket's row."""
    return LifecycleRule(**row)


class ExpiryRules:
    """The rules by which objects expire, in memory by bucket and digest."""

    def __init__(self, database: BrainDatabase) -> None:
        self._database = database
        self._known: BoundedCache[tuple[int, str], Sequence[LifecycleRule]] = BoundedCache(
            KEPT_BYTES,
            lambda _, rules: RULE_BYTES * (len(rules) + 1),
            owner_of=lambda name, _: name[0],
        )

    async def of_bucket(self, bucket: BucketInfo) -> Sequence[LifecycleRule]:
        """Return the bucket's rules; none if they have just changed. Raises DatabaseUnavailable."""
        name = (bucket.id, bucket.lifecycle)
        known = self._known.get(name)
        if known is not None:
            return known
        row = await self._database.one(OF_BUCKET, name)
        if row is None:
            return ()
        rules = await in_steps(loaded, row.lifecycle)
        found = [rule for rule in rules if rule.expires]
        self._known.put(name, found)
        return found
