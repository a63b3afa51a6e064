"""The limits that an operator may give one organization, and what each of them may be."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import transaction

from platform_site.lib.errors import Conflict
from sqlgateway.models import OrganizationQuota

# Limits by name; None is the setting's.
Values = Mapping[str, int | None]
Changes = dict[str, dict[str, int | None]]

DEFAULT: Final = "default"
MAX_STATEMENTS: Final = 10_000
# A PositiveBigIntegerField holds far more; what is longer is a slip of the hand.
MAX_VALUE: Final = 2**51 - 1
# The least of the settings, too: an error or a row has to fit.
MIN_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True)
class OwnLimit:
    """One limit, a column of OrganizationQuota.

    setting: what holds for an organization without its own. default: the setting's value. label,
    unit: for people; a number of things has no unit. help: what it limits. is_capped: an
    organization cannot have more than the setting allows.
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
        """What it may be at most."""
        return min(self.highest, self.default()) if self.is_capped else self.highest

    def read(self, text: str) -> int | None:
        """Return the number that a text says, None if it says ``default``.

        Raises ValueError with a sentence for people.
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
        "Of each environment's database",
    ),
    OwnLimit(
        "environments",
        "ZENVIRONMENT_LIMIT",
        lambda: settings.ENVIRONMENTS.limit,
        "Environments",
        "",
        "Environments that it may have",
    ),
    OwnLimit(
        "statements",
        "ZSQL_RUNNING_PER_ORGANIZATION",
        lambda: settings.SQL.running_per_organization,
        "Requests at once",
        "",
        "SQL requests that each web process runs for it at once",
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
    """Return the own limits by name, of a row or of an organization that has no row."""
    return {limit.name: getattr(quota, limit.name, None) for limit in LIMITS}


def set_own(organization_id: int, given: Values, *, seen: Values | None = None) -> Changes:
    """Set limits by name, None to the setting's; return those that changed.

    seen: all own limits that the caller decided upon.
    Raises Conflict if they have changed since.
    """
    with transaction.atomic():
        # unscoped: an operator names the tenant
        rows = OrganizationQuota.unscoped.select_for_update()
        row = rows.filter(organization_id=organization_id).first()
        changed = checked(own_of(row), given, seen=seen)
        if changed and row is None:
            row, is_new = rows.get_or_create(organization_id=organization_id)
            # Unless another one was quicker.
            changed = changed if is_new else checked(own_of(row), given, seen=seen)
        for name in changed:
            setattr(row, name, given[name])
        if row is not None and changed:
            row.save(update_fields=list(changed))
    return changed


def checked(own: Values, given: Values, *, seen: Values | None) -> Changes:
    """Return what would change, as the audit trail keeps it.

    Raises Conflict if anything would, and the own limits are not those that were seen.
    """
    changed = {
        name: {"from": own[name], "to": value}
        for name, value in given.items()
        if value != own[name]
    }
    if changed and seen is not None and own != seen:
        raise Conflict("The limits were changed meanwhile. Open the form again.")
    return changed
