"""Invitations to an organization by mail, and exports of its data."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Upper

from accounts.models import User
from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Organization


class Invitation(TenantModel):
    """An invitation of one address; the holder of the mailed token may accept it once.

    digest: of the token, which only the mail contains. If the address has an account already, it is
    the digest of a token that is sent to no one, so that the rows look the same.
    member: an account created in advance, without a password, which the token activates.
    invited_by: None if a development token or an administrator invited, or the user was deleted.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    email = models.EmailField(max_length=254)
    roles = ArrayField(models.CharField(max_length=20))
    labels = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    member = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    invited_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """One open invitation of an address to an organization; a new one replaces it."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                "organization",
                Upper("email"),
                condition=models.Q(accepted_at=None, revoked_at=None),
                name="invitation_one_an_address",
            ),
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)

    def inviter_email(self) -> str | None:
        """Return the inviting member's address if it is verified, for the invited person."""
        host = self.invited_by
        return host.email if host is not None and host.email_verified_at is not None else None

    def state(self, now: datetime) -> str:
        """Return ``pending``, ``expired``, ``accepted`` or ``revoked``."""
        if self.accepted_at is not None:
            return "accepted"
        if self.revoked_at is not None:
            return "revoked"
        return "pending" if now < self.expires_at else "expired"


class RemovedMember(TenantModel):
    """A member that an admin removed: no domain or group lets the person in again.

    An invitation of the address ends that. digests: of the address and of the accounts at
    providers, so that the row names nobody.
    """

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    digests = ArrayField(models.CharField(max_length=64))
    removed_at = models.DateTimeField()

    def __str__(self) -> str:
        """Return when that was; the row has no name."""
        return f"removed {self.removed_at:%Y-%m-%d %H:%M}"


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
