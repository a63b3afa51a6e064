"""Users: people who belong to one organization."""

from typing import Any, ClassVar
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Upper

from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Environment, Organization


class User(AbstractBaseUser, TenantModel):
    """A person who belongs to one organization; the e-mail is unique without regard to case.

    roles: of ``admin``, ``operator``, ``reader``, given by an admin; derived_roles: those from
    memberships at an identity provider, written by oauth.memberships.derived_roles only.
    A user has both. labels: free text of the organization.
    is_staff: works for the platform itself, and may use the admin; is_view_only: read-only there.
    sessions_ended: how often all sessions of the user were ended together. A session of the admin
    has no row here: it stores the number at its start, and is invalid once the number has changed.
    email: '' for an account whose unverified address was given to the owner of the mailbox, at
    address_released_at (accounts/reclaim/address_release.py).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="users")
    email = models.EmailField(max_length=254, blank=True)
    email_verified_at = models.DateTimeField(null=True, blank=True)
    address_released_at = models.DateTimeField(null=True, blank=True, db_index=True)
    roles = ArrayField(models.CharField(max_length=20), default=list)
    derived_roles = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    labels = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    is_view_only = models.BooleanField(default=False, db_default=False)
    sessions_ended = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    last_environment = models.ForeignKey(
        Environment, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta(TenantModel.Meta):
        """One account per address, without regard to case (``iexact`` compares by UPPER)."""

        constraints: ClassVar[list[Any]] = [
            # A query has to exclude '' itself for PostgreSQL to use the index.
            models.UniqueConstraint(
                Upper("email"), condition=~models.Q(email=""), name="user_email_unique"
            ),
        ]

    @classmethod
    def locked(cls, user_id: UUID) -> "User":
        """Return a user's current row, locked until the transaction ends."""
        rows = cls.unscoped.select_for_update(no_key=True)  # unscoped: by its own key
        found: User = rows.get(pk=user_id)
        return found

    def __str__(self) -> str:
        """Return the address, or the id of an account without one."""
        return self.email or str(self.pk)

    @property
    def may_act(self) -> bool:
        """True for staff that may make changes in the admin."""
        return self.is_active and self.is_staff and not self.is_view_only

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Staff may read everything in the admin; changes require ``may_act``."""
        may_look = self.is_active and self.is_staff
        return may_look if ".view_" in perm else self.may_act

    def has_module_perms(self, app_label: str) -> bool:
        """True for staff: they see every application in the admin."""
        return self.is_active and self.is_staff
