"""Models of external sign-in: identities, OAuth transactions, grants, domains."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from common.ids import uuid7
from common.scoping import TenantModel


class Provider(models.TextChoices):
    """The providers that can prove an identity."""

    GOOGLE = "google", "Google"
    GITHUB = "github", "GitHub"
    DISCORD = "discord", "Discord"
    APPLE = "apple", "Apple"


class Identity(TenantModel):
    """An account at a provider that signs a user in, identified by the provider's own id of it.

    email, username, name: as the provider last sent them, for display; never used for matching.
    is_private_email: a relay address that Apple created for this service.
    memberships: the mapped groups that it was last known to be in; roles are derived from them.
    credentials: the provider's tokens, encrypted; '' if no membership has to be asked for.
    confirmed_at: when the provider last confirmed the memberships; synced_at: last asked.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+"
    )
    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="identities")
    provider = models.CharField(max_length=20, choices=Provider)
    subject = models.CharField(max_length=255)
    email = models.CharField(max_length=254, blank=True)
    is_private_email = models.BooleanField(default=False)
    username = models.CharField(max_length=100, blank=True)
    name = models.CharField(max_length=200, blank=True)
    memberships = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    credentials = models.TextField(blank=True)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    synced_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """An account at a provider belongs to one user."""

        verbose_name_plural = "identities"
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("provider", "subject", name="identity_unique"),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["synced_at"],
                condition=~models.Q(credentials=""),
                name="identity_to_sync",
            ),
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)


class OAuthTransaction(models.Model):
    """One pass of a browser through a provider: valid for ten minutes and one callback.

    state_digest: of the ``state`` that the provider returns. ticket_digest: of the ticket that
    starts a prepared link, '' for a sign-in. browser_digest: of the secret in the browser's cookie,
    '' until a browser has started the link. encrypted_session: what social-core keeps (nonce, PKCE
    verifier). redirect_to, client_state, code_challenge, environment: the client's.
    user, session_id: of a link; empty for a sign-in.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    provider = models.CharField(max_length=20, choices=Provider)
    state_digest = models.CharField(max_length=64, unique=True)
    ticket_digest = models.CharField(max_length=64, blank=True, db_index=True)
    browser_digest = models.CharField(max_length=64, blank=True)
    encrypted_session = models.TextField()
    redirect_to = models.CharField(max_length=2000)
    client_state = models.CharField(max_length=512, blank=True)
    code_challenge = models.CharField(max_length=43)
    environment = models.CharField(max_length=100, blank=True)
    user = models.ForeignKey("accounts.User", null=True, on_delete=models.CASCADE, related_name="+")
    session_id = models.UUIDField(null=True)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)


class GrantKind(models.TextChoices):
    """What kind of secret a grant belongs to."""

    CODE = "code"
    LINK = "link"


class OAuthGrant(models.Model):
    """A verified profile that a secret can be exchanged for, once.

    kind: ``code`` (sixty seconds, created by a callback) or ``link`` (ten minutes, a
    ``link_token`` that only the named user can redeem). digest: of the secret.
    user, session_id: of a code, the linking user; of a link token, the owner of the account with
    the same e-mail address. code_challenge: of a code; '' for a link token.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    kind = models.CharField(max_length=10, choices=GrantKind)
    provider = models.CharField(max_length=20, choices=Provider)
    encrypted_profile = models.TextField()
    code_challenge = models.CharField(max_length=43, blank=True)
    environment = models.CharField(max_length=100, blank=True)
    user = models.ForeignKey("accounts.User", null=True, on_delete=models.CASCADE, related_name="+")
    session_id = models.UUIDField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return the kind."""
        return self.kind


class Domain(TenantModel):
    """A domain that an organization claims, and owns once it is verified.

    token: what the TXT record has to contain; not a secret. role: of users who join by the domain.
    seen_at: when the record was last found; without it the verification expires.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+"
    )
    domain = models.CharField(max_length=253)
    role = models.CharField(max_length=20)
    token = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    verified_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """Several organizations may claim a domain; one can verify it."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("organization", "domain", name="domain_claim_unique"),
            models.UniqueConstraint(
                "domain", condition=models.Q(verified_at__isnull=False), name="domain_proof_unique"
            ),
        ]

    def __str__(self) -> str:
        """Return the domain."""
        return self.domain
