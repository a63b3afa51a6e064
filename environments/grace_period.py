"""When an organization's requirement of a second factor applies to a member."""

from datetime import datetime, timedelta


def deadline(
    required_since: datetime | None, grace_period_days: int, *, member_since: datetime
) -> datetime:
    """Return the end of the grace period.

    It begins with the requirement or when the member joined, whichever is later.

    required_since: None means always.
    """
    begins = max(required_since or member_since, member_since)
    return begins + timedelta(days=grace_period_days)
