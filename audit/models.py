"""The audit trail."""

from typing import Any, ClassVar

from django.db import models

from common.ids import uuid7
from common.scoping import TenantModel


class AuditEvent(TenantModel):
    """An audit event: append-only (a trigger refuses UPDATE and DELETE).

    tag: ``source:subject:action``. Ids are plain values without constraints, because an event
    outlives the rows it refers to.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    tag = models.CharField(max_length=100)
    outcome = models.CharField(max_length=20, default="success")
    organization_id = models.BigIntegerField(null=True)
    environment_id = models.CharField(max_length=63, blank=True)
    actor_id = models.UUIDField(null=True)
    actor = models.CharField(max_length=254, blank=True)
    address = models.CharField(max_length=45, blank=True)
    agent = models.CharField(max_length=300, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict)

    class Meta:
        """Ordered for reading by organization, newest first."""

        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["organization_id", "-id"], name="audit_by_organization"),
            # Each scrape reads the time of the last backup, even if there was none, and each start
            # of a process the keys that were used.
            models.Index(
                fields=["tag", "-at"],
                condition=models.Q(
                    tag__in=["cli:backup:create", "cli:backup:drill", "system:key:see"]
                ),
                name="audit_of_backups",
            ),
        ]

    def __str__(self) -> str:
        """Return the tag."""
        return self.tag
