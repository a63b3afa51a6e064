"""Who: users, their sessions, the audit trail, and the counters behind the limits."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Upper

from environments.models import Environment, Organization
from platform_site.lib.ids import uuid7
from platform_site.lib.scoping import TenantModel


class User(AbstractBaseUser, TenantModel):
    """A person who belongs to one organization; the e-mail is unique without regard to case.

    roles: of ``admin``, ``operator``, ``reader``. labels: free words of the organization's own.
    is_staff: works for the platform itself, and may enter the admin.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="users")
    email = models.EmailField(max_length=254)
    email_verified_at = models.DateTimeField(null=True, blank=True)
    roles = ArrayField(models.CharField(max_length=20), default=list)
    labels = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    last_environment = models.ForeignKey(
        Environment, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta(TenantModel.Meta):
        """One account an address, however it is spelled (UPPER is what iexact asks for)."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(Upper("email"), name="user_email_unique"),
        ]

    def __str__(self) -> str:
        """Give the address."""
        return self.email

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Staff may do in the admin what its pages offer."""
        return self.is_active and self.is_staff

    def has_module_perms(self, app_label: str) -> bool:
        """Staff see every application in the admin."""
        return self.is_active and self.is_staff


class Session(TenantModel):
    """One sign-in in one environment; tokens only point at it.

    login_id: shared by the sessions that one sign-in led to (switching), revoked together.
    generation, previous_generation: the refresh chain (auth.md, "Tokens and sessions");
    is_confirmed: a token of the current generation has been used, so its delivery is certain.
    auth_time: when the first factor was proven; mfa_time, mfa_method: the latest proof of a second.
    succeeded_by: the session that a switch exchanged this one for.
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
        """Give the id."""
        return str(self.id)

    def is_live(self, now: datetime) -> bool:
        """Say whether its tokens count, as far as this row alone can say."""
        return self.ended_at is None and now < self.ends_at

    def is_in_grace(self, now: datetime) -> bool:
        """Say whether the previous generation still counts."""
        return now <= self.rotated_at + timedelta(seconds=settings.JWT_REFRESH_GRACE_S)


class AuditEvent(models.Model):
    """What happened: append-only (a trigger refuses UPDATE and DELETE), outlives whom it names.

    tag: ``source:subject:action``. The keys are plain ids, without constraints, for that reason.
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
        """Read by organization, newest first."""

        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["organization_id", "-id"], name="audit_by_organization"),
        ]

    def __str__(self) -> str:
        """Give the tag."""
        return self.tag


class Throttle(models.Model):
    """One counter of failures; see limits.py, which alone writes it."""

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    last_at = models.DateTimeField()
    blocked_until = models.DateTimeField()

    def __str__(self) -> str:
        """Give the key, a digest."""
        return self.key


class Delivery(TenantModel):
    """One mail or text message on its way; accounts.delivery alone writes it.

    payload: recipient and content, encrypted; '' once it is sent or given up. What stays says who
    was told what and when: hint (the recipient, masked), template ('' for SMS), error (a code).
    attempts: counts each claim, and tells the claim that still counts from one that lost its lease.
    user_id: a plain id, since a notice outlives the account it tells of.
    """

    class Kind(models.TextChoices):
        """What carries it."""

        MAIL = "mail"
        SMS = "sms"

    class State(models.TextChoices):
        """How far it got.

        queued → sending → sent; or back to queued; or failed (its attempts are used up: waits for
        an operator); or given_up (refused for good, expired, or failed too long ago).
        """

        QUEUED = "queued"
        SENDING = "sending"
        SENT = "sent"
        FAILED = "failed"
        GIVEN_UP = "given_up"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=10, choices=Kind)
    template = models.CharField(max_length=40, blank=True)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.CASCADE, related_name="+"
    )
    user_id = models.UUIDField(null=True)
    hint = models.CharField(max_length=254)
    payload = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    attempts_allowed = models.PositiveIntegerField(default=10)
    error = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    next_attempt_at = models.DateTimeField(null=True)
    claimed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True, db_index=True)

    class Meta(TenantModel.Meta):
        """The unfinished ones are few, and looked through every five minutes."""

        verbose_name_plural = "deliveries"
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["state", "next_attempt_at"],
                condition=models.Q(state__in=["queued", "sending", "failed"]),
                name="delivery_unfinished",
            ),
        ]

    def __str__(self) -> str:
        """Give the id."""
        return str(self.id)

    def finish(self, state: "Delivery.State", *, error: str = "", now: datetime) -> None:
        """End as sent, given up or failed; only a failed one keeps its content."""
        self.state = state
        self.error = error[:60]
        self.next_attempt_at = self.claimed_at = None
        self.finished_at = now
        if state != self.State.FAILED:
            self.payload = ""
        self.save()
