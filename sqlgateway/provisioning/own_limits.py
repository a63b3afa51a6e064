"""The limits that an operator may give one organization, and what each of them may be."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import transaction

from sqlgateway.models import OrganizationQuota

DEFAULT: Final = "default"
MOST_STATEMENTS: Final = 10_000
# A PositiveBigIntegerField holds far more; what is longer is a slip of the hand.
MOST: Final = 2**51 - 1
# The least of the settings, too: an error or a row has to fit.
LEAST_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True)
class OwnLimit:
    """One limit, a column of OrganizationQuota.

    setting: what holds for an organization without its own. help: what it limits. ceiling: what the
    setting allows, where an organization cannot have more than others; else None.
    """

    name: str
    setting: str
    help: str
    lowest: int = 0
    highest: int = MOST
    ceiling: Callable[[], int] | None = None

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
        if self.ceiling is not None and number > self.ceiling():
            most = self.ceiling()
            raise ValueError(f"{number} is above {most}, which {self.setting} allows at most.")
        if number > self.highest:
            raise ValueError(f"{number} is above {self.highest}, the most that it may be.")
        return number


LIMITS: Final = (
    OwnLimit("disk_bytes", "ZSQL_DISK_LIMIT_BYTES", "Of each environment's database"),
    OwnLimit("environments", "ZENVIRONMENT_LIMIT", "Environments that it may have"),
    OwnLimit(
        "statements",
        "ZSQL_RUNNING_PER_ORGANIZATION",
        "SQL requests that each web process runs for it at once",
        highest=MOST_STATEMENTS,
    ),
    OwnLimit(
        "timeout_ms",
        "ZSQL_TIMEOUT_MS",
        "The time of one request in milliseconds, also of a stream's or an import, which otherwise "
        "have ZSQL_EXPORT_TIMEOUT_S and ZSQL_IMPORT_TIMEOUT_S; at most ZSQL_TIMEOUT_MS",
        lowest=1,
        ceiling=lambda: settings.SQL.timeout_ms,
    ),
    OwnLimit(
        "max_rows",
        "ZSQL_MAX_ROWS",
        "Rows of one result in JSON, at most ZSQL_MAX_ROWS",
        lowest=1,
        ceiling=lambda: settings.SQL.max_rows,
    ),
    OwnLimit(
        "max_bytes",
        "ZSQL_MAX_BYTES",
        "Bytes of the rows of one JSON answer, at most ZSQL_MAX_BYTES",
        lowest=LEAST_BYTES,
        ceiling=lambda: settings.SQL.max_bytes,
    ),
    OwnLimit(
        "body_bytes",
        "ZSQL_BODY_LIMIT_BYTES",
        "Bytes of the body of POST /v1/sql, and of a statement of an interactive transaction, at "
        "most ZSQL_BODY_LIMIT_BYTES",
        lowest=LEAST_BYTES,
        ceiling=lambda: settings.SQL.body_limit_bytes,
    ),
    OwnLimit(
        "import_bytes",
        "ZSQL_IMPORT_LIMIT_BYTES",
        "Bytes of an imported body, unpacked, at most ZSQL_IMPORT_LIMIT_BYTES",
        lowest=LEAST_BYTES,
        ceiling=lambda: settings.SQL.import_limit_bytes,
    ),
)


def set_own(organization_id: int, given: Mapping[str, int | None]) -> dict[str, int | None]:
    """Set limits by name, None to the setting's; return those that changed."""
    with transaction.atomic():
        # unscoped: an operator names the tenant
        rows = OrganizationQuota.unscoped.select_for_update()
        row, _ = rows.get_or_create(organization_id=organization_id)
        changed = {name: value for name, value in given.items() if getattr(row, name) != value}
        for name, value in changed.items():
            setattr(row, name, value)
        row.save(update_fields=list(changed))
    return changed
