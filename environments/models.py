"""Models of organizations and their environments, and of their requests by hour."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower

from common.scoping import TenantModel

BUILT_IN: Final = ("live", "sandbox")
MFA_METHODS: Final = ("totp", "sms", "email", "webauthn", "backup_codes")


def all_methods() -> list[str]:
    """Return every method: the policy of a new organization."""
    return list(MFA_METHODS)


class Organization(models.Model):
    """A tenant: it owns users, environments and all data in them.

    mfa_*: its policy on the second factor. mfa_allowed_methods: the methods that may be used;
    mfa_required_since: when the requirement began, from which the grace period counts.
    recovery_questions_enabled: security questions are weak (OWASP ASVS 5.0 6.4.2), so disabled by
    default.
    deletion_*: set by the request; after deletion_began_at it cannot be cancelled.
    deleted_at: its data and name were deleted; the row stays for the ledger.
    """

    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    mfa_required = models.BooleanField(default=False)
    mfa_required_since = models.DateTimeField(null=True, blank=True)
    mfa_allowed_methods = ArrayField(
        models.CharField(max_length=20), default=all_methods, blank=True
    )
    mfa_grace_period_days = models.PositiveSmallIntegerField(default=7)
    mfa_updated_at = models.DateTimeField(null=True, blank=True)
    mfa_updated_by = models.UUIDField(null=True, blank=True)
    recovery_questions_enabled = models.BooleanField(default=False)
    deletion_requested_at = models.DateTimeField(null=True, blank=True)
    deletion_requested_by = models.CharField(max_length=254, blank=True, default="", db_default="")
    deletion_due_at = models.DateTimeField(null=True, blank=True, db_index=True)
    deletion_began_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        """Return the name, or the number of a deleted organization."""
        return self.name or f"deleted organization {self.pk}"


class Environment(TenantModel):
    """An isolated data set of an organization.

    slug: the public id, immutable; name: a label. Each is unique in the organization, and no name
    is another's slug, because login and switch accept both. A deleted environment keeps its row
    until its data is dropped; its slug and name can be used again immediately.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="environments"
    )
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=100)
    is_built_in = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """Names and slugs are unique among the environments that are not deleted."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                "organization",
                "slug",
                condition=models.Q(deleted_at=None),
                name="environment_slug_unique",
            ),
            models.UniqueConstraint(
                "organization",
                Lower("name"),
                condition=models.Q(deleted_at=None),
                name="environment_name_unique",
            ),
        ]

    def __str__(self) -> str:
        """Return the public id."""
        return self.slug


class RequestHour(TenantModel):
    """API requests of an organization in one hour, kept for eight days (request_activity.py).

    hour: its beginning. refused: responses with status 400 to 499. failed: with 500 and above.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    hour = models.DateTimeField(db_index=True)
    requests = models.BigIntegerField()
    refused = models.BigIntegerField()
    failed = models.BigIntegerField()

    class Meta(TenantModel.Meta):
        """One row per organization and hour."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "hour"], name="request_hour_unique")
        ]

    def __str__(self) -> str:
        """Return the organization and the hour."""
        return f"{self.organization_id}, {self.hour:%Y-%m-%d %H:%M}"


def second_factor_deadline(
    required_since: datetime | None, grace_period_days: int, *, member_since: datetime
) -> datetime:
    """Return the end of the grace period, after which a member must use a second factor.

    It begins with the requirement or when the member joined, whichever is later.

    required_since: None means always.
    """
    begins = max(required_since or member_since, member_since)
    return begins + timedelta(days=grace_period_days)
