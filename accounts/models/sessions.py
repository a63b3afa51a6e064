"""Sessions: one sign-in each; tokens only refer to them."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models.users import User
from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Environment, Organization


class Session(TenantModel):
    """One sign-in in one environment; tokens only refer to it.

    login_id: shared by the sessions of one sign-in (after switching), which are revoked together.
    generation, previous_generation: the refresh chain (auth.md, "Tokens and sessions");
    is_confirmed: a token of the current generation was used, so the client has received it.
    auth_time: when the first factor was proven; mfa_time, mfa_method: the latest proof of a second.
    succeeded_by: the session that replaced this one in a switch.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    login_id = models.UUIDField(default=uuid7, editable=False, db_index=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sessions")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+")
    generation = models.PositiveIntegerField(default=1)
    previous_generation = models.PositiveIntegerField(default=0)
    is_confirmed = models.BooleanField(default=False)
    rotated_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=40, blank=True)
    succeeded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    aal = models.PositiveSmallIntegerField(default=1)
    amr = ArrayField(models.CharField(max_length=20), default=list)
    auth_time = models.DateTimeField()
    mfa_time = models.DateTimeField(null=True, blank=True)
    mfa_method = models.CharField(max_length=20, blank=True)
    address = models.CharField(max_length=45, blank=True)
    agent = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        """Live sessions of a user are counted at each sign-in."""

        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["user", "rotated_at"],
                condition=models.Q(ended_at=None),
                name="session_live_by_user",
            ),
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)

    def is_live(self, now: datetime) -> bool:
        """True if its tokens are valid, by this row only."""
        return self.ended_at is None and now < self.ends_at

    def is_in_grace(self, now: datetime) -> bool:
        """True if the previous generation is still accepted."""
        return now <= self.rotated_at + timedelta(seconds=settings.ACCOUNTS.refresh_grace_s)
