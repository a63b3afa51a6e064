"""How much one request of an organization may use: its own limits below the settings'."""

from dataclasses import dataclass
from typing import Final, Self

from django.conf import settings

from sqlgateway.models import OrganizationQuota


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """An organization's own limits of a request; None is the setting's, and none raises it.

    What a process may hold in memory is counted with the settings' (sqlgateway/checks.py), which is
    why they are looked at each time: one that was lowered also holds for those who had more.
    """

    own_timeout_ms: int | None = None
    own_max_rows: int | None = None
    own_max_bytes: int | None = None
    own_body_bytes: int | None = None
    own_import_bytes: int | None = None

    @classmethod
    def of(cls, quota: OrganizationQuota | None) -> Self:
        """Return those of an organization's row, or of one that has no row."""
        if quota is None:
            return cls()
        return cls(
            quota.timeout_ms,
            quota.max_rows,
            quota.max_bytes,
            quota.body_bytes,
            quota.import_bytes,
        )

    def timeout_ms(self, limit_ms: int) -> int:
        """Return how long a request may run for which a setting allows so long.

        The own limit is that of any request, so it is never above ZSQL_TIMEOUT_MS, in streams and
        imports too.
        """
        if self.own_timeout_ms is None:
            return limit_ms
        return min(limit_ms, self.own_timeout_ms, settings.SQL.timeout_ms)

    @property
    def max_rows(self) -> int:
        """Rows of one result in JSON."""
        return _lower(settings.SQL.max_rows, self.own_max_rows)

    @property
    def max_bytes(self) -> int:
        """Bytes of the rows of one JSON answer."""
        return _lower(settings.SQL.max_bytes, self.own_max_bytes)

    @property
    def import_bytes(self) -> int:
        """Bytes of an imported body, unpacked."""
        return _lower(settings.SQL.import_limit_bytes, self.own_import_bytes)

    def body_bytes(self, limit_bytes: int) -> int:
        """Return how long the JSON body of a view may be that allows so many bytes."""
        return _lower(limit_bytes, self.own_body_bytes)


def _lower(setting: int, own: int | None) -> int:
    return setting if own is None else min(setting, own)


# Of an organization that has none of its own.
NO_LIMITS: Final = RequestLimits()
