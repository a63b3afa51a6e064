"""Limits of organizations, and their usage."""

from django.db import models

from common.scoping import TenantModel
from environments.models import Organization


class OrganizationQuota(TenantModel):
    """An organization's own limits; null selects the setting's value.

    disk_bytes: the size of each environment's database.
    environments: the number of environments.
    statements: the requests that run concurrently in each web process.
    The others are limits of one request (provisioning/limits/organization_limits.py).
    """

    organization = models.OneToOneField(
        "environments.Organization", on_delete=models.CASCADE, related_name="quota"
    )
    disk_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    environments = models.PositiveBigIntegerField(null=True, blank=True)
    statements = models.PositiveIntegerField(null=True, blank=True)
    timeout_ms = models.PositiveIntegerField(null=True, blank=True)
    max_rows = models.PositiveIntegerField(null=True, blank=True)
    max_bytes = models.PositiveIntegerField(null=True, blank=True)
    body_bytes = models.PositiveIntegerField(null=True, blank=True)
    import_bytes = models.PositiveBigIntegerField(null=True, blank=True)

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
