"""What external sign-in keeps: linked identities, visits under way, what they end in, domains."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from platform_site.lib.ids import uuid7
from platform_site.lib.scoping import TenantModel


class Provider(models.TextChoices):
    """Who can vouch for an identity."""

    GOOGLE = "google", "Google"
    GITHUB = "github", "GitHub"
    DISCORD = "discord", "Discord"
    APPLE = "apple", "Apple"


class Identity(TenantModel):
    """An account at a provider that signs a user in: known by the provider's id of it alone.

    email, username, name: as the provider last told, to be shown; nobody is found by them.
    is_private_email: a relay's address that Apple made for this service.
    memberships: the mapped groups whose member it is, as last heard; roles follow from them.
    credentials: the provider's tokens, encrypted; '' where no membership has to be asked for.
    confirmed_at: when the provider last said what the memberships are; synced_at: last asked.
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
        """One account at a provider is one user's."""

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
        """Give the id."""
        return str(self.id)


class ProviderVisit(models.Model):
    """A browser on its way to a provider and back: ten minutes, one return.

    state, ticket, binding: digests of what the provider echoes, of what a link is begun with, and
    of the cookie of the browser that went. sealed: what social-core keeps of it (nonce, PKCE
    verifier), encrypted. redirect_to, client_state, code_challenge, environment: for the client.
    user, session_id: whose link it is; empty for a sign-in.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    provider = models.CharField(max_length=20, choices=Provider)
    state = models.CharField(max_length=64, unique=True)
    ticket = models.CharField(max_length=64, blank=True, db_index=True)
    binding = models.CharField(max_length=64, blank=True)
    sealed = models.TextField()
    redirect_to = models.CharField(max_length=2000)
    client_state = models.CharField(max_length=512, blank=True)
    code_challenge = models.CharField(max_length=43)
    environment = models.CharField(max_length=100, blank=True)
    user = models.ForeignKey("accounts.User", null=True, on_delete=models.CASCADE, related_name="+")
    session_id = models.UUIDField(null=True)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        """Give the id."""
        return str(self.id)


class ProviderGrant(models.Model):
    """What a secret can be exchanged for, once: a proven profile.

    kind: ``code`` (sixty seconds: the return from a provider) or ``link`` (ten minutes: a
    ``link_token``, good in the hands of the user it names). digest: of the secret.
    profile: encrypted. user, session_id: whose link it is; of a link token, whose account it is
    that has the e-mail. code_challenge: of a code; a link token has none.
    """

    class Kind(models.TextChoices):
        """Which secret."""

        CODE = "code"
        LINK = "link"

    digest = models.CharField(max_length=64, primary_key=True)
    kind = models.CharField(max_length=10, choices=Kind)
    provider = models.CharField(max_length=20, choices=Provider)
    profile = models.TextField()
    code_challenge = models.CharField(max_length=43, blank=True)
    environment = models.CharField(max_length=100, blank=True)
    user = models.ForeignKey("accounts.User", null=True, on_delete=models.CASCADE, related_name="+")
    session_id = models.UUIDField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Say what kind it is."""
        return self.kind


class Domain(TenantModel):
    """A domain that an organization says is its own, and has proven to be when verified.

    token: what the TXT record must hold; no secret. role: of those who join by the domain.
    seen_at: when the record was last found; without it the proof lapses.
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
        """Many may claim a domain, and one can have proven it."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("organization", "domain", name="domain_claim_unique"),
            models.UniqueConstraint(
                "domain", condition=models.Q(verified_at__isnull=False), name="domain_proof_unique"
            ),
        ]

    def __str__(self) -> str:
        """Give the domain."""
        return self.domain
