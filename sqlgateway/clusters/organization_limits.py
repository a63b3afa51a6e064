"""The limits of an organization: its own ones, and the settings' for the others.

Own limits are the JSON of one column, ``OrganizationQuota.limits``. A limit is an attribute of
``Quota``: the options of ``setquota``, the fields and columns of the admin and the checks of their
values are made from these.
"""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self, overload

from django.conf import settings
from django.db import connection, transaction

from common.errors import Conflict
from sqlgateway.models import OrganizationQuota

# Own limits by name; None selects the setting's value.
Values = Mapping[str, int | None]
Changes = dict[str, dict[str, int | None]]

DEFAULT: Final = "default"
# Each was a column in the release before; a limit that is added now never was.
FORMER_COLUMNS: Final = (
    "disk_bytes",
    "environments",
    "statements",
    "timeout_ms",
    "max_rows",
    "max_bytes",
    "body_bytes",
    "import_bytes",
)
MAX_STATEMENTS: Final = 10_000
# Above that a number is a typing error.
MAX_VALUE: Final = 2**51 - 1
# Also the minimum of the settings: an error or a row must fit.
MIN_BYTES: Final = 1_024


@dataclass(eq=False)
class OwnLimit:
    """One limit; as an attribute of a ``Quota``, the number in effect.

    setting: the setting that applies to organizations without a limit of their own.
    default: returns the setting's value.
    label, unit: as the admin shows them; a number of things has no unit.
    help: what it limits.
    lowest, highest: the range of values.
    is_capped: the value cannot exceed the setting's, with which a process's memory is planned
    (sqlgateway/checks.py), also if the setting was lowered later.
    """

    setting: str
    default: Callable[[], int]
    label: str
    unit: str
    help: str
    lowest: int = 0
    highest: int = MAX_VALUE
    is_capped: bool = False
    name: str = field(init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the attribute's name, which is the key in the JSON."""
        self.name = name

    @overload
    def __get__(self, quota: None, owner: type) -> Self: ...
    @overload
    def __get__(self, quota: "Quota", owner: type) -> int: ...
    def __get__(self, quota: "Quota | None", owner: type) -> Self | int:
        """Return the number in effect for a quota."""
        if quota is None:
            return self
        own = quota.own.get(self.name)
        if own is None:
            return self.default()
        return min(own, self.default()) if self.is_capped else own

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


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits in effect for an organization. own: its own ones by name."""

    own: Mapping[str, int] = field(default_factory=dict)

    disk_bytes = OwnLimit(
        "ZSQL_DISK_LIMIT_BYTES",
        lambda: settings.SQL.disk_limit_bytes,
        "Disk",
        "bytes",
        "Size of each environment's database",
    )
    environments = OwnLimit(
        "ZENVIRONMENT_LIMIT",
        lambda: settings.ENVIRONMENTS.limit,
        "Environments",
        "",
        "Number of environments",
    )
    statements = OwnLimit(
        "ZSQL_RUNNING_PER_ORGANIZATION",
        lambda: settings.SQL.running_per_organization,
        "Concurrent requests",
        "",
        "SQL requests that each web process runs concurrently for the organization",
        highest=MAX_STATEMENTS,
    )
    timeout_ms = OwnLimit(
        "ZSQL_TIMEOUT_MS",
        lambda: settings.SQL.timeout_ms,
        "Request time",
        "ms",
        "The time of one request in milliseconds, also of a stream's or an import, which otherwise "
        "have ZSQL_EXPORT_TIMEOUT_S and ZSQL_IMPORT_TIMEOUT_S; at most ZSQL_TIMEOUT_MS",
        lowest=1,
        is_capped=True,
    )
    max_rows = OwnLimit(
        "ZSQL_MAX_ROWS",
        lambda: settings.SQL.max_rows,
        "Result rows",
        "",
        "Rows of one result in JSON, at most ZSQL_MAX_ROWS",
        lowest=1,
        is_capped=True,
    )
    max_bytes = OwnLimit(
        "ZSQL_MAX_BYTES",
        lambda: settings.SQL.max_bytes,
        "JSON answer",
        "bytes",
        "Bytes of the rows of one JSON answer, at most ZSQL_MAX_BYTES",
        lowest=MIN_BYTES,
        is_capped=True,
    )
    body_bytes = OwnLimit(
        "ZSQL_BODY_LIMIT_BYTES",
        lambda: settings.SQL.body_limit_bytes,
        "Request body",
        "bytes",
        "Bytes of the body of POST /v1/sql, and of a statement of an interactive transaction, at "
        "most ZSQL_BODY_LIMIT_BYTES",
        lowest=MIN_BYTES,
        is_capped=True,
    )
    import_bytes = OwnLimit(
        "ZSQL_IMPORT_LIMIT_BYTES",
        lambda: settings.SQL.import_limit_bytes,
        "Import body",
        "bytes",
        "Bytes of an imported body, unpacked, at most ZSQL_IMPORT_LIMIT_BYTES",
        lowest=MIN_BYTES,
        is_capped=True,
    )

    @classmethod
    def of(cls, row: OrganizationQuota | None) -> Self:
        """Return the limits of a row; None for an organization without one."""
        return cls() if row is None else cls(row.limits)

    def within(self, limit: OwnLimit, other: int) -> int:
        """Return the limit of a kind of request that has ``other``: the lower own one, if any."""
        return min(other, limit.__get__(self, Quota)) if limit.name in self.own else other


LIMITS: Final = tuple(each for each in vars(Quota).values() if isinstance(each, OwnLimit))


def quota_of(organization_id: int) -> Quota:
    """Return the limits in effect for an organization."""
    # the organization's own row
    return Quota.of(OrganizationQuota.objects.filter(organization_id=organization_id).first())


def own_of(row: OrganizationQuota | None) -> Values:
    """Return an organization's own limits by name. row: None if it has none."""
    return {limit.name: Quota.of(row).own.get(limit.name) for limit in LIMITS}


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
        if row is not None and changed:
            own = row.limits | {name: given[name] for name in changed}
            row.limits = {name: value for name, value in own.items() if value is not None}
            row.save(update_fields=["limits"])
            _write_former_columns(row)
    return changed


def _write_former_columns(row: OrganizationQuota) -> None:
    """Write the columns too, from which the code of before reads the limits after a step back."""
    pairs = ", ".join(f"{name} = (limits->>'{name}')::bigint" for name in FORMER_COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE sqlgateway_organizationquota SET {pairs} WHERE id = %s",  # noqa: S608 - names of ours
            [row.pk],
        )


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
