"""Limits of one request: the lower of an organization's own limit and the setting."""

from dataclasses import dataclass
from typing import Final, Self

from django.conf import settings

from sqlgateway.models import OrganizationQuota


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """An organization's own limits of a request; None selects the setting's value.

    A process's memory is planned with the settings' values (sqlgateway/checks.py). So an own limit
    never exceeds the setting, also if the setting was lowered later.
    """

    own_timeout_ms: int | None = None
    own_max_rows: int | None = None
    own_max_bytes: int | None = None
    own_body_bytes: int | None = None
    own_import_bytes: int | None = None

    @classmethod
    def of(cls, quota: OrganizationQuota | None) -> Self:
        """Return the limits of an organization. quota: None if it has no row."""
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
        """Return the lower of a setting (``limit_ms``) and the organization's own limit.

        An own limit applies to every kind of request. It never exceeds ZSQL_TIMEOUT_MS, also for
        streams and imports.
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
        """Return the lower of a view's limit (``limit_bytes``) and the organization's own."""
        return _lower(limit_bytes, self.own_body_bytes)


def _lower(setting: int, own: int | None) -> int:
    return setting if own is None else min(setting, own)


# The limits of an organization without limits of its own.
NO_LIMITS: Final = RequestLimits()
