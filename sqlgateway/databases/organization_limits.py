"""The limits that an administrator can set for one organization, and their ranges."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import transaction

from common.errors import Conflict
from sqlgateway.models import OrganizationQuota

# Limits by name; None selects the setting's value.
Values = Mapping[str, int | None]
Changes = dict[str, dict[str, int | None]]

DEFAULT: Final = "default"
MAX_STATEMENTS: Final = 10_000
# A PositiveBigIntegerField allows far more, but such a number is a typing error.
MAX_VALUE: Final = 2**51 - 1
# Also the minimum of the settings: an error or a row must fit.
MIN_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True)
class OwnLimit:
    """One limit, a column of OrganizationQuota.

    name: the column.
    setting: the setting that applies to organizations without a limit of their own.
    default: returns the setting's value.
    label, unit: as the admin shows them; a number of things has no unit.
    help: what it limits.
    lowest, highest: the range of values.
    is_capped: the value cannot exceed the setting's.
    """

    name: str
    setting: str
    default: Callable[[], int]
    label: str
    unit: str
    help: str
    lowest: int = 0
    highest: int = MAX_VALUE
    is_capped: bool = False

    @property
    def max_value(self) -> int:
        """The highest value, which for a capped limit depends on the setting."""
        return min(self.highest, self.default()) if self.is_capped else self.highest

    def read(self, text: str) -> int | None:
        """Return the number in a text, None if the text is ``default``.

        Raises ValueError with a message for the administrator.
        """
        if text == DEFAULT:
            return None
        try:
            number = int(text)
        except ValueError:
            shown = reprlib.repr(text)
            raise ValueError(f"{shown} is neither a whole number nor {DEFAULT!r}.") from None
        if number < self.lowest:
            raise ValueError(f"{number} is below {self.lowest}, the least that it may be.")
        if self.is_capped and number > self.default():
            raise ValueError(
                f"{number} is above {self.default()}, which {self.setting} allows at most."
            )
        if number > self.highest:
            raise ValueError(f"{number} is above {self.highest}, the most that it may be.")
        return number


LIMITS: Final = (
    OwnLimit(
        "disk_bytes",
        "ZSQL_DISK_LIMIT_BYTES",
        lambda: settings.SQL.disk_limit_bytes,
        "Disk",
        "bytes",
        "Size of each environment's database",
    ),
    OwnLimit(
        "environments",
        "ZENVIRONMENT_LIMIT",
        lambda: settings.ENVIRONMENTS.limit,
        "Environments",
        "",
        "Number of environments",
    ),
    OwnLimit(
        "statements",
        "ZSQL_RUNNING_PER_ORGANIZATION",
        lambda: settings.SQL.running_per_organization,
        "Concurrent requests",
        "",
        "SQL requests that each web process runs concurrently for the organization",
        highest=MAX_STATEMENTS,
    ),
    OwnLimit(
        "timeout_ms",
        "ZSQL_TIMEOUT_MS",
        lambda: settings.SQL.timeout_ms,
        "Request time",
        "ms",
        "The time of one request in milliseconds, also of a stream's or an import, which otherwise "
        "have ZSQL_EXPORT_TIMEOUT_S and ZSQL_IMPORT_TIMEOUT_S; at most ZSQL_TIMEOUT_MS",
        lowest=1,
        is_capped=True,
    ),
    OwnLimit(
        "max_rows",
        "ZSQL_MAX_ROWS",
        lambda: settings.SQL.max_rows,
        "Result rows",
        "",
        "Rows of one result in JSON, at most ZSQL_MAX_ROWS",
        lowest=1,
        is_capped=True,
    ),
    OwnLimit(
        "max_bytes",
        "ZSQL_MAX_BYTES",
        lambda: settings.SQL.max_bytes,
        "JSON answer",
        "bytes",
        "Bytes of the rows of one JSON answer, at most ZSQL_MAX_BYTES",
        lowest=MIN_BYTES,
        is_capped=True,
    ),
    OwnLimit(
        "body_bytes",
        "ZSQL_BODY_LIMIT_BYTES",
        lambda: settings.SQL.body_limit_bytes,
        "Request body",
        "bytes",
        "Bytes of the body of POST /v1/sql, and of a statement of an interactive transaction, at "
        "most ZSQL_BODY_LIMIT_BYTES",
        lowest=MIN_BYTES,
        is_capped=True,
    ),
    OwnLimit(
        "import_bytes",
        "ZSQL_IMPORT_LIMIT_BYTES",
        lambda: settings.SQL.import_limit_bytes,
        "Import body",
        "bytes",
        "Bytes of an imported body, unpacked, at most ZSQL_IMPORT_LIMIT_BYTES",
        lowest=MIN_BYTES,
        is_capped=True,
    ),
)


def own_of(quota: OrganizationQuota | None) -> Values:
    """Return an organization's own limits by name. quota: None if it has no row."""
    return {limit.name: getattr(quota, limit.name, None) for limit in LIMITS}


def set_own(organization_id: int, given: Values, *, seen: Values | None = None) -> Changes:
    """Set limits by name, None for the setting's value; return those that changed.

    seen: all own limits as the caller saw them.
    Raises Conflict if they have changed since then.
    """
    with transaction.atomic():
        rows = OrganizationQuota.objects.select_for_update()
        row = rows.filter(organization_id=organization_id).first()
        changed = checked(own_of(row), given, seen=seen)
        if changed and row is None:
            row, is_new = rows.get_or_create(organization_id=organization_id)
            # Another process may have created the row first.
            changed = changed if is_new else checked(own_of(row), given, seen=seen)
        for name in changed:
            setattr(row, name, given[name])
        if row is not None and changed:
            row.save(update_fields=list(changed))
    return changed


def checked(own: Values, given: Values, *, seen: Values | None) -> Changes:
    """Return the changes in the form of the audit trail.

    Raises Conflict if there are changes, and the own limits differ from ``seen``.
    """
    changed = {
        name: {"from": own[name], "to": value}
        for name, value in given.items()
        if value != own[name]
    }
    if changed and seen is not None and own != seen:
        raise Conflict("The limits have changed since. Open the form again.")
    return changed
