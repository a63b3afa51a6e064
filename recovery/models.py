"""Models of recoveries, their challenges, and answers to security questions."""

from datetime import datetime
from typing import Any, ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import User
from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Organization
from twofactor.models import ChallengeModel

TRIES: Final = 5


class Method(models.TextChoices):
    """How a recovery identifies the user."""

    EMAIL = "email"
    SMS = "sms"
    SECURITY_QUESTIONS = "security_questions"


class Purpose(models.TextChoices):
    """What the user has lost."""

    PASSWORD = "password"  # noqa: S105 - what is recovered
    SECOND_FACTOR = "second_factor"


class Recovery(TenantModel):
    """A recovery; its row is the same whether or not the account exists.

    digest: of the ``recovery_id`` the client holds. request: that id, for the mail's link, and the
    claimed organization and address, encrypted; '' after the task has processed it.
    organization, user: set by that task, None without an account. token, cancel: keyed digests of
    what was sent. fingerprint: of password, address and factors; a change invalidates the recovery.
    asked: ids of the security questions; answered_at: when they were answered, which is possible
    once; is_answered: the answers were right.
    generation: of the reset token; a new token invalidates the previous one.
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
        """Indexed for cancel tokens, and for a user's open recoveries, which end together."""

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
        """Return the purpose and the method."""
        return f"{self.purpose} by {self.method}"

    def is_open(self, now: datetime) -> bool:
        """True if its token can still be entered."""
        is_unused = self.ended_at is None and self.verified_at is None
        return is_unused and self.attempts_left > 0 and now < self.expires_at

    def is_resettable(self, now: datetime) -> bool:
        """True if its reset token is still valid."""
        if self.ended_at is not None or self.reset_expires_at is None:
            return False
        return now < self.reset_expires_at

    @property
    def channel(self) -> str:
        """The channel of the token; right answers to questions only cause a mail."""
        return "sms" if self.method == Method.SMS else "email"


class RecoveryChallenge(ChallengeModel):
    """A challenge for a second factor during a recovery; deleted after its answer."""

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
        """One answer per user and question."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["user", "question"], name="security_answer_unique"),
        ]

    def __str__(self) -> str:
        """Return the question's id."""
        return self.question
