"""Clusters of tenants' databases, and which database belongs to which environment."""

import json
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from django.db import models
from django.utils import timezone

from common import crypto, locks
from common.permissions import Role
from common.scoping import TenantModel


class Cluster(models.Model):
    """A PostgreSQL server that holds tenants' databases.

    url_secret: the administrator's URL, encrypted.
    capacity: the number of databases that may be placed on it.
    flags: the server's capabilities (clusters.py).
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
    moving_*: the unfinished copy of a move or restore (database_copy/switching.py).
    copy_source: the database that a clone copies.
    copy_error: why the clone is FAILED, for its tenant.
    is_over_quota: it may not grow (limits/quotas.py).
    PROTECT: the database must be dropped before its environment is deleted
    (provisioning.on_environment_dropped).
    """

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
