"""Users, their sessions and API keys, and what is pending: sign-ups, sign-ins, proofs."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Upper

from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Environment, Organization

KeyState = Literal["active", "expired", "revoked"]
# In which the previous refresh token returns the same successor again.
REFRESH_GRACE_S: Final = 10
PROOF_ATTEMPTS: Final = 5


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
        rows = cls.objects.select_for_update(no_key=True)
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


class Session(TenantModel):
    """One sign-in in one environment; tokens only refer to it.

    login_id: shared by the sessions of one sign-in (after switching), which are revoked together.
    generation, previous_generation: the refresh chain (auth.md, "Tokens and sessions");
    is_confirmed: a token of the current generation was used, so the client has received it.
    auth_time: when the first factor was proven; mfa_time, mfa_method: the latest proof of a second.
    succeeded_by: the session that replaced this one in a switch.
    address, agent: of the request that opened or last refreshed it.
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
        return now <= self.rotated_at + timedelta(seconds=REFRESH_GRACE_S)


class ApiKey(TenantModel):
    """A key for one environment; valid while its creator is an admin.

    digest: SHA-256 of the key, which is shown once and never stored; hint: its last characters.
    role, scopes: the key may do what both allow.
    last_used_at, last_used_address: up to a minute old.
    text: the key itself, only on a newly created instance; not a column.
    """

    is_of_environment = True

    text: str = ""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+")
    creator = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="+", db_column="maker_id"
    )
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


class MailboxProof(TenantModel):
    """The address a user has to verify: the account's own, or a new one.

    code: keyed digest of the mailed code. cancel: digest of the token in the notice to the present
    address; '' without one. fingerprint: of password and address when the change was requested, so
    that a change of either invalidates it; '' for the account's own address.
    sent_at: when a code was last mailed.
    """

    user = models.OneToOneField(
        User, primary_key=True, on_delete=models.CASCADE, related_name="mailbox_proof"
    )
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    email = models.EmailField(max_length=254)
    code = models.CharField(max_length=64)
    cancel = models.CharField(max_length=64, blank=True, db_index=True)
    fingerprint = models.CharField(max_length=64, blank=True)
    attempts_left = models.PositiveSmallIntegerField(default=PROOF_ATTEMPTS)
    sent_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return the attempts that are left."""
        return f"{self.attempts_left} attempts left"

    def is_open(self, now: datetime) -> bool:
        """True if its code can still be entered."""
        return self.attempts_left > 0 and now < self.expires_at


class SignupLink(models.Model):
    """A mailed link to sign up with; it works once.

    digest: of the token, which only the mail contains.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    email = models.EmailField(max_length=254)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return when it expires; lists do not show the address."""
        return f"until {self.expires_at:%Y-%m-%d %H:%M}"


class TerminalSignIn(models.Model):
    """A program that waits for its user to allow the sign-in in a browser.

    digest: of the request's id, which opens its page. code_challenge: RFC 7636, S256: a code
    has no effect without the program's verifier.
    host, address, agent: the requesting program, as the page shows it; the program chooses the host
    name.
    port: of the program's listener on 127.0.0.1; null if its user copies the code.
    environment: the requested one, '' for the last used one; the slug once it is allowed.
    user, session_id: the user who has allowed it, and the session; code_digest: of the one-time
    code that was issued.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    code_challenge = models.CharField(max_length=43)
    host = models.CharField(max_length=64)
    address = models.CharField(max_length=45)
    agent = models.CharField(max_length=300)
    port = models.PositiveIntegerField(null=True)
    environment = models.CharField(max_length=100, blank=True)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    session_id = models.UUIDField(null=True)
    code_digest = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001 - unique
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return the requesting host."""
        return self.host
