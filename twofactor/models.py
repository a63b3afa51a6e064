"""Models of the second factor: factors, enrolments, challenges, pending sign-ins, devices."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from django.db import models

from accounts.models import Session, User
from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Environment, Organization

CHALLENGE_TRIES: Final = 5


class Factor(TenantModel):
    """An active method of a user.

    method: ``totp``, ``sms``, ``email``, ``webauthn`` or ``backup_codes``.
    secret: encrypted; the seed, the phone number or the address; empty for the last two.
    hint: the masked number or address, as ``•••• 67``. last_step: the last used TOTP step.
    failures: consecutive ones over all challenges; blocked_until: when the next attempt is allowed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="factors")
    method = models.CharField(max_length=20)
    secret = models.TextField(blank=True)
    hint = models.CharField(max_length=100, blank=True)
    last_step = models.BigIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    blocked_until = models.DateTimeField(null=True, blank=True)
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """One factor per user and method."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["user", "method"], name="factor_one_a_method"),
        ]

    def __str__(self) -> str:
        """Return the method."""
        return self.method


class BackupCode(models.Model):
    """A code that works once; only its keyed digest is stored."""

    factor = models.ForeignKey(Factor, on_delete=models.CASCADE, related_name="codes")
    digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Looked up by factor and digest."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["factor", "digest"], name="backup_code_unique"),
        ]

    def __str__(self) -> str:
        """Return whether it was used."""
        return "used" if self.used_at else "unused"


class Passkey(models.Model):
    """A WebAuthn credential; its id is unique over all users (WebAuthn L3 §7.1 step 26)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    factor = models.ForeignKey(Factor, on_delete=models.CASCADE, related_name="passkeys")
    credential_id = models.BinaryField(max_length=1023, unique=True)
    public_key = models.BinaryField()
    sign_count = models.BigIntegerField(default=0)
    is_backup_eligible = models.BooleanField(default=False)
    is_user_verified = models.BooleanField(default=False)
    transports = models.JSONField(default=list)
    rp_id = models.CharField(max_length=253)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        """Return the name."""
        return self.name


class Enrolment(TenantModel):
    """A factor that is being set up; it has no effect before its verification.

    digest: of the id the client holds (``secret_id``, ``verification_id``, ``session_id``).
    secret: encrypted JSON of the method's own.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    method = models.CharField(max_length=20)
    secret = models.TextField()
    attempts_left = models.PositiveSmallIntegerField(default=CHALLENGE_TRIES)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        """Return the method."""
        return self.method


class EnrolmentDue(TenantModel):
    """A user whose lost factors were removed: each sign-in must set one up, until one is active.

    Otherwise a user who stops in between would have an account that requires only the password.
    """

    user = models.OneToOneField(User, primary_key=True, on_delete=models.CASCADE, related_name="+")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        """Return the user's id."""
        return str(self.pk)


class PendingSignIn(TenantModel):
    """A sign-in for which only the second factor is missing; the ``mfa_token`` refers to it.

    use: ``challenge`` (a factor must be proven) or ``enrol`` (one must be set up).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+")
    use = models.CharField(max_length=10)
    amr = models.JSONField(default=list)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        """Return what it waits for."""
        return self.use


class ChallengeModel(TenantModel):
    """A request to prove one factor: ten minutes, five attempts (challenges/challenge_base.py).

    digest: of the id the client holds, under DIGEST_PURPOSE. public_id: that id, encrypted, for
    repeated requests. secret: encrypted; compared with the answer, and used to answer a repeated
    request.
    """

    DIGEST_PURPOSE: ClassVar[str]

    digest = models.CharField(max_length=64, primary_key=True)
    public_id = models.TextField()
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    factor = models.ForeignKey(Factor, on_delete=models.CASCADE, related_name="+")
    secret = models.TextField(blank=True)
    attempts_left = models.PositiveSmallIntegerField(default=CHALLENGE_TRIES)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        """Abstract: each purpose has its own table."""

        abstract = True

    def __str__(self) -> str:
        """Return the attempts that are left."""
        return f"{self.attempts_left} tries left"

    def is_open(self, now: datetime) -> bool:
        """True if it can still be answered."""
        return self.attempts_left > 0 and now < self.expires_at


class Challenge(ChallengeModel):
    """A challenge of a sign-in or of a session, answered once.

    pending: the sign-in it belongs to (purpose login); session: the session it raises (purpose
    step-up); exactly one of the two.
    """

    DIGEST_PURPOSE = "challenge"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    pending = models.ForeignKey(
        PendingSignIn, null=True, on_delete=models.CASCADE, related_name="+"
    )
    session = models.ForeignKey(Session, null=True, on_delete=models.CASCADE, related_name="+")
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """Indexed for the latest challenge of a factor, which each new request reads."""

        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["factor", "-created_at"], name="challenge_by_factor"),
        ]

    def is_open(self, now: datetime) -> bool:
        """True if it can still be answered."""
        return self.used_at is None and super().is_open(now)


class TrustedDevice(TenantModel):
    """A device that skips the second factor at login, and nothing else.

    generation: the token is derived from it, so that a repeated login within the grace gets the
    same successor without a stored token.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="trusted_devices")
    generation = models.PositiveIntegerField(default=1)
    name = models.CharField(max_length=100)
    failures = models.PositiveSmallIntegerField(default=0)
    rotated_at = models.DateTimeField()
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    def is_in_grace(self, now: datetime) -> bool:
        """True if the token before the last rotation is still accepted."""
        return now <= self.rotated_at + timedelta(seconds=10)


class PasskeyRequest(models.Model):
    """A started sign-in by passkey: valid for five minutes and one answer.

    digest: of the id the client holds. email_digest: of the only accepted account, '' for any.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    challenge = models.BinaryField()
    rp_id = models.CharField(max_length=253)
    email_digest = models.CharField(max_length=64, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return the RP ID."""
        return self.rp_id
