"""Recoveries under way, the proofs of a second factor they ask for, and security questions."""

from datetime import datetime
from typing import Any, ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import User
from environments.models import Organization
from platform_site.lib.ids import uuid7
from platform_site.lib.scoping import TenantModel
from twofactor.models import ChallengeModel

TRIES: Final = 5


class Method(models.TextChoices):
    """How somebody is to be proven."""

    EMAIL = "email"
    SMS = "sms"
    SECURITY_QUESTIONS = "security_questions"


class Purpose(models.TextChoices):
    """What was lost."""

    PASSWORD = "password"  # noqa: S105 - what is recovered
    SECOND_FACTOR = "second_factor"


class Recovery(TenantModel):
    """One recovery, of an account that may not exist: its row is the same either way.

    digest: of the ``recovery_id`` the client holds. request: that id, for the mail's link, and the
    organization and the address as they were claimed, encrypted; '' once a task has looked.
    organization, user: set by that task, None without an account. token, cancel: keyed digests
    of what was sent. fingerprint: of password, address and factors, so that a change ends the
    recovery.
    asked: ids of the security questions; answered_at: when they were answered, once whether right
    or wrong; is_answered: right.
    generation: of the reset token; a new one voids the one before.
    proven_at, effective_at, amr: only for a lost second factor: when the first factor was proven,
    when the delay ends, and what has been proven (RFC 8176).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    digest = models.CharField(max_length=64, unique=True)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.CASCADE, related_name="+"
    )
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    method = models.CharField(max_length=20, choices=Method)
    purpose = models.CharField(max_length=20, choices=Purpose)
    request = models.TextField()
    asked = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    is_answered = models.BooleanField(default=False)
    token = models.CharField(max_length=64, blank=True)
    cancel = models.CharField(max_length=64, blank=True)
    fingerprint = models.CharField(max_length=64, blank=True)
    attempts_left = models.PositiveSmallIntegerField(default=TRIES)
    generation = models.PositiveSmallIntegerField(default=0)
    amr = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    address = models.CharField(max_length=45, blank=True)
    agent = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)
    verified_at = models.DateTimeField(null=True, blank=True)
    reset_expires_at = models.DateTimeField(null=True, blank=True)
    proven_at = models.DateTimeField(null=True, blank=True)
    effective_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=20, blank=True)

    class Meta(TenantModel.Meta):
        """A cancel token is looked up by its digest; a user's open ones end together."""

        verbose_name_plural = "recoveries"
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["cancel"], condition=~models.Q(cancel=""), name="recovery_cancel_unique"
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["user"], condition=models.Q(ended_at=None), name="recovery_open_by_user"
            ),
        ]

    def __str__(self) -> str:
        """Return what is recovered, and how."""
        return f"{self.purpose} by {self.method}"

    def is_open(self, now: datetime) -> bool:
        """Return whether its token can still be tried."""
        is_unused = self.ended_at is None and self.verified_at is None
        return is_unused and self.attempts_left > 0 and now < self.expires_at

    def is_resettable(self, now: datetime) -> bool:
        """Return whether its reset token still counts."""
        if self.ended_at is not None or self.reset_expires_at is None:
            return False
        return now < self.reset_expires_at

    @property
    def channel(self) -> str:
        """What carries the token: right answers to questions only cause a mail."""
        return "sms" if self.method == Method.SMS else "email"


class RecoveryChallenge(ChallengeModel):
    """A second factor, asked for on the way to a new password; deleted when it was answered."""

    DIGEST_PURPOSE = "recovery challenge"

    recovery = models.ForeignKey(Recovery, on_delete=models.CASCADE, related_name="+")


class SecurityAnswer(TenantModel):
    """A user's answer to one question of the catalogue, hashed as a password is."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="security_answers")
    question = models.CharField(max_length=40)
    encoded = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        """One answer a question."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["user", "question"], name="security_answer_unique"),
        ]

    def __str__(self) -> str:
        """Return the question's id."""
        return self.question
