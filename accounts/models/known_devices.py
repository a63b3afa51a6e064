"""Devices that a user has signed in from."""

from typing import Any, ClassVar

from django.db import models

from accounts.models.users import User
from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Organization


class KnownDevice(TenantModel):
    """A program and network that a user has signed in from; it gives no access.

    digest: SHA-256 of user, program and network.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    last_seen_at = models.DateTimeField(db_index=True)

    class Meta(TenantModel.Meta):
        """One row per user and device."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["user", "digest"], name="known_device_once"),
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)
