"""Exports of an organization's data."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Organization


class OrganizationExport(TenantModel):
    """An archive of all data of an organization.

    requested_by: a name, as in audit events. failure: a sentence. missing: sentences about data
    that is not in the archive. expires_at: when its file is deleted.
    """

    class State(models.TextChoices):
        """queued → running → ready, or failed."""

        QUEUED = "queued"
        RUNNING = "running"
        READY = "ready"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    requested_by = models.CharField(max_length=254)
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, db_index=True)
    size_bytes = models.BigIntegerField(default=0)
    failure = models.CharField(max_length=300, blank=True)
    missing = ArrayField(models.CharField(max_length=300), default=list, blank=True)

    class Meta(TenantModel.Meta):
        """One unfinished export at a time for each organization."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["organization"],
                condition=models.Q(state__in=["queued", "running"]),
                name="organization_export_once",
            )
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)
