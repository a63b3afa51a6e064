"""API keys: credentials of programs."""

from datetime import datetime
from typing import Literal

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models.users import User
from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Environment, Organization

KeyState = Literal["active", "expired", "revoked"]


class ApiKey(TenantModel):
    """A key for one environment; valid while its maker is an admin.

    digest: SHA-256 of the key, which is shown once and never stored; hint: its last characters.
    role, scopes: the key may do what both allow.
    last_used_at, last_used_address: up to a minute old.
    text: the key itself, only on a newly created instance; not a column.
    """

    text: str = ""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+")
    maker = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    hint = models.CharField(max_length=8)
    digest = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=20)
    scopes = ArrayField(models.CharField(max_length=30))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoke_reason = models.CharField(max_length=40, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_address = models.CharField(max_length=45, blank=True)

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    def state(self, now: datetime) -> KeyState:
        """Return ``active``, ``expired`` or ``revoked``, by this row only."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if now < self.expires_at else "expired"
