"""The gateway's tables, all in the control database.

In this order: clusters and databases; limits of organizations, and their usage; interactive
transactions, history, running requests and saved queries.
"""

import json
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from common import crypto, locks
from common.ids import uuid7
from common.permissions import Role
from common.scoping import TenantModel
from environments.models import Organization

# The beginning of a text that the history keeps.
HISTORY_TEXT_CHARS: Final = 2_000
# In a kept text: instead of a literal or comment that may be a secret, and instead of the whole.
REMOVED: Final = "'[removed]'"
ALL_REMOVED: Final = "[removed: the text may contain a secret]"


class Cluster(models.Model):
    """A PostgreSQL server that holds tenants' databases.

    url_secret: the administrator's URL, encrypted.
    reserved_for: the only organization whose databases are placed on it; None for all.
    capacity: the number of databases that may be placed on it.
    flags: the server's capabilities (clusters/servers.py).
    system_identifier: PostgreSQL's own number of the server, so that a server is not added twice.
    private_paths: folders of the server, which are removed from its messages.
    """

    class State(models.TextChoices):
        """OPEN clusters get new databases; DRAINING ones do not; CLOSED ones have no databases."""

        OPEN = "open"
        DRAINING = "draining"
        CLOSED = "closed"

    name = models.CharField(max_length=63, unique=True)
    url_secret = models.TextField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    reserved_for = models.ForeignKey(
        "environments.Organization",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="reserved_clusters",
    )
    capacity = models.PositiveIntegerField(default=1000)
    server_version = models.PositiveIntegerField(default=0)
    system_identifier = models.CharField(max_length=20, blank=True, default="")
    flags = models.JSONField(default=list)
    private_paths = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    @property
    def url(self) -> str:
        """The administrator's URL, decrypted."""
        return crypto.decrypt(self.url_secret)

    @url.setter
    def url(self, value: str) -> None:
        self.url_secret = crypto.encrypt(value)


class Database(TenantModel):
    """The placement of one environment's data.

    Without an environment it is being prepared, or is in the stock.

    secrets: the passwords of the three roles, encrypted as JSON.
    passwords_since: the time of the last rotation (password_rotation.py).
    moving_*: the unfinished copy of a move or restore (databases/copies/switching.py).
    copy_source: the database that a clone copies.
    copy_error: why the clone is FAILED, for its tenant.
    is_over_quota: it may not grow (databases/quotas.py).
    PROTECT: the database must be dropped before its environment is deleted
    (provisioning.on_environment_dropped).
    """

    is_of_environment = True

    class State(models.TextChoices):
        """States of a database.

        PREPARING: being created; it has no data, and can be created again.
        STOCK: ready, without an environment.
        ACTIVE: in use by an environment.
        MOVING: being moved or replaced; logins are forbidden until this has ended.
        COPYING: a clone that is being filled.
        FAILED: a clone that could not be filled.
        SUSPENDED: the environment was deleted; logins are forbidden.
        DROPPED: being dropped.
        """

        PREPARING = "preparing"
        STOCK = "stock"
        ACTIVE = "active"
        MOVING = "moving"
        COPYING = "copying"
        FAILED = "failed"
        SUSPENDED = "suspended"
        DROPPED = "dropped"

    organization = models.ForeignKey(
        "environments.Organization",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="databases",
    )
    environment = models.OneToOneField(
        "environments.Environment",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="database",
    )
    engine = models.CharField(max_length=32, default="postgresql")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="databases")
    dbname = models.CharField(max_length=63, unique=True)
    admin_role = models.CharField(max_length=63, unique=True)
    operator_role = models.CharField(max_length=63, unique=True)
    reader_role = models.CharField(max_length=63, unique=True)
    secrets = models.TextField()
    passwords_since = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PREPARING)
    hardening = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    moving_to = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    moving_dbname = models.CharField(max_length=63, blank=True, default="")
    moving_since = models.DateTimeField(null=True, blank=True)
    copy_source = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    copy_attempts = models.PositiveSmallIntegerField(default=0)
    copy_error = models.TextField(blank=True, default="")
    size_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    measured_at = models.DateTimeField(null=True, blank=True)
    is_over_quota = models.BooleanField(default=False)

    class Meta(TenantModel.Meta):
        """An index of databases without an environment; both owners are set, or neither."""

        indexes: ClassVar[list[Any]] = [
            models.Index("id", condition=models.Q(environment=None), name="sqlgateway_unclaimed")
        ]
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(
                condition=models.Q(organization=None, environment=None)
                | models.Q(organization__isnull=False, environment__isnull=False),
                name="sqlgateway_database_owner",
            )
        ]

    def __str__(self) -> str:
        """Return the row's number, because the database's name is random."""
        return f"database {self.pk}"

    def hand_over(self, organization_id: int, environment_pk: int) -> None:
        """Assign the row to an environment, in the caller's transaction.

        Raises IntegrityError if the environment already has a database.
        """
        self.organization_id = organization_id
        self.environment_id = environment_pk
        self.state = self.State.ACTIVE
        self.claimed_at = timezone.now()
        self.save(update_fields=["organization", "environment", "state", "claimed_at", "hardening"])

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock for moves, clones, restores and rotations while the block runs.

        The lock also ends with the process. Raises common.locks.Busy on entering.
        """
        return locks.exclusive(f"sqlgateway database {self.pk}")

    @property
    def roles(self) -> dict[Role, str]:
        """The names of the three roles."""
        return {
            "admin": self.admin_role,
            "operator": self.operator_role,
            "reader": self.reader_role,
        }

    @property
    def passwords(self) -> dict[Role, str]:
        """The three passwords, decrypted."""
        given: dict[Role, str] = json.loads(crypto.decrypt(self.secrets))
        return given

    @passwords.setter
    def passwords(self, value: dict[Role, str]) -> None:
        self.secrets = crypto.encrypt(json.dumps(value))


class RetiredDatabase(TenantModel):
    """A database that its environment no longer uses, kept until drop_after.

    roles: the roles to drop with it; empty if the environment still uses them on this cluster.
    """

    is_of_environment = True

    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.PROTECT, related_name="retired_databases"
    )
    environment = models.ForeignKey(
        "environments.Environment", on_delete=models.PROTECT, related_name="retired_databases"
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="retired_databases")
    dbname = models.CharField(max_length=63)
    roles = models.JSONField(default=list)
    retired_at = models.DateTimeField(auto_now_add=True)
    drop_after = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return the row's number, because the database's name is random."""
        return f"retired database {self.pk}"


class OrganizationQuota(TenantModel):
    """An organization's own limits.

    limits: numbers by name (clusters/organization_limits.py); the settings apply to the others.
    """

    organization = models.OneToOneField(
        "environments.Organization", on_delete=models.CASCADE, related_name="quota"
    )
    limits = models.JSONField(default=dict, db_default={})

    def __str__(self) -> str:
        """Return a label with the organization's id."""
        return f"quota of organization {self.organization_id}"


class OrganizationLimits(Organization):
    """An organization as the admin lists it with its limits.

    ``quota`` is its row of own limits, which it may not have.
    """

    class Meta:
        proxy = True
        verbose_name = "organization with its limits"
        verbose_name_plural = "organizations with their limits"


class SqlUsage(models.Model):
    """Usage of one environment in one hour, counted by one process, until billing takes it.

    Not scoped, because billing records outlive environments.
    batch: the id of the write, so that a repeated write is not counted twice.
    """

    batch = models.UUIDField()
    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    hour = models.DateTimeField()
    statements = models.BigIntegerField(db_default=0)
    milliseconds = models.BigIntegerField(db_default=0)
    bytes_out = models.BigIntegerField(db_default=0)
    storage_byte_hours = models.DecimalField(max_digits=40, decimal_places=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "environment_pk", "hour"], name="sql_usage_once"
            )
        ]

    def __str__(self) -> str:
        """Return a label."""
        return f"{self.environment_pk} {self.hour:%Y-%m-%d %H}"


class SqlStorageDay(models.Model):
    """A day for which the storage was added to the usage."""

    day = models.DateField(primary_key=True)

    def __str__(self) -> str:
        """Return the day."""
        return str(self.day)


class InteractiveTransaction(TenantModel):
    """A transaction that stays open over several requests, and the process that owns it.

    caller_role: the caller's role.
    role: the role of the connection; reader for a read-only transaction.
    id: its first eight digits are the label of the machine that owns it.
    owner: the name of the socket of the process that owns it.
    xid: its id in PostgreSQL, set when the commit begins.
    active_until: when it no longer counts as open.
    """

    is_of_environment = True

    class State(models.TextChoices):
        """Only one caller can change the state from OPEN to another one."""

        OPEN = "open"
        COMMITTING = "committing"
        COMMITTED = "committed"
        ROLLED_BACK = "rolled_back"

    id = models.UUIDField(primary_key=True)
    organization = models.ForeignKey("environments.Organization", on_delete=models.CASCADE)
    environment = models.ForeignKey("environments.Environment", on_delete=models.CASCADE)
    user_id = models.UUIDField(null=True)
    session_id = models.UUIDField(null=True)
    caller_role = models.CharField(max_length=16)
    role = models.CharField(max_length=16)
    owner = models.CharField(max_length=300)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    xid = models.CharField(max_length=20, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    active_until = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta(TenantModel.Meta):
        """An index of open transactions, which are counted by organization."""

        indexes: ClassVar[list[Any]] = [
            models.Index(
                "organization",
                condition=models.Q(state="open"),
                name="sqlgateway_open_transactions",
            )
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.pk)

    @property
    def label(self) -> str:
        """The label of the machine that owns it."""
        return str(self.pk)[:8]

    @property
    def outcome(self) -> str:
        """The outcome, as in an error's ``outcome``."""
        is_known = self.state in {self.State.COMMITTED, self.State.ROLLED_BACK}
        return str(self.state) if is_known else "unknown"


class SqlRecord(TenantModel):
    """One SQL request in the history (run/history.py writes the rows, without Django).

    text: without parameters' values, truncated, secrets removed.
    outcome: ``success``, or the error's code.
    row_count: of the last statement; None after an error.
    explain: ``plan`` or ``analyze``; empty where the text ran as it is.
    """

    is_of_environment = True

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    environment = models.ForeignKey(
        "environments.Environment", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user_id = models.UUIDField(null=True)
    actor = models.CharField(max_length=254)
    role = models.CharField(max_length=16)
    request_id = models.CharField(max_length=64)
    at = models.DateTimeField()
    text = models.TextField()
    statements = models.PositiveIntegerField()
    elapsed_ms = models.FloatField()
    outcome = models.CharField(max_length=64)
    sqlstate = models.CharField(max_length=5, blank=True)
    row_count = models.BigIntegerField(null=True)
    explain = models.CharField(max_length=8, blank=True, default="", db_default="")

    class Meta(TenantModel.Meta):
        """Indexes: rows are read by environment, newest first, and trimmed by organization."""

        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["environment", "id"], name="sqlgateway_sqlrecord_newest"),
            models.Index(fields=["organization", "id"], name="sqlgateway_sqlrecord_of_org"),
        ]

    def __str__(self) -> str:
        """Return the row's id: the text belongs to the tenant."""
        return f"SQL request {self.pk}"

    @property
    def is_cut(self) -> bool:
        """True if the text may not be all that ran: it was longer, or secrets were removed."""
        is_long = len(self.text) >= HISTORY_TEXT_CHARS
        return is_long or self.text == ALL_REMOVED or REMOVED in self.text


class RunningSql(TenantModel):
    """One SQL request that has run for a while (run/running_requests.py).

    text: as in SqlRecord.
    expires_at: a process that has not renewed the row by then has died.
    is_cancelled: a request to its process to cancel it.
    """

    is_of_environment = True

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+"
    )
    environment = models.ForeignKey(
        "environments.Environment", on_delete=models.CASCADE, related_name="+"
    )
    user_id = models.UUIDField(null=True)
    actor = models.CharField(max_length=254)
    role = models.CharField(max_length=16)
    request_id = models.CharField(max_length=64)
    text = models.TextField()
    at = models.DateTimeField()
    expires_at = models.DateTimeField()
    is_cancelled = models.BooleanField(default=False)

    def __str__(self) -> str:
        """Return the row's id: the text belongs to the tenant."""
        return f"running SQL request {self.pk}"


class SavedQuery(TenantModel):
    """A text that the members of an organization share (run/saved_queries.py).

    version: the number of the last change, so that a change of an outdated text is refused.
    updated_by: as in the audit trail.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(max_length=100)
    text = models.TextField()
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=254)

    class Meta(TenantModel.Meta):
        """Names are unique in an organization, ignoring case."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("organization", Lower("name"), name="sqlgateway_saved_name")
        ]

    def __str__(self) -> str:
        """Return the row's id: the name belongs to the tenant."""
        return f"saved query {self.pk}"
