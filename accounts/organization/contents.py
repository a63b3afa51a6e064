"""An organization's data in the layers up to accounts, without secrets."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from accounts.audit import trail
from accounts.models import ApiKey, User
from accounts.models.invitations import Invitation
from accounts.models.webhooks import WebhookEndpoint
from accounts.oauth.models import Domain, Identity
from environments.models import Environment, Organization
from platform_site.lib.archives import Archive

ORGANIZATION: Final = (
    *("id", "name", "created_at", "mfa_required", "mfa_required_since", "mfa_allowed_methods"),
    *("mfa_grace_period_days", "mfa_updated_at", "recovery_questions_enabled"),
)
MEMBER: Final = (
    *("id", "email", "email_verified_at", "roles", "derived_roles", "labels", "is_active"),
    "created_at",
)
IDENTITY: Final = (
    *("user_id", "provider", "subject", "email", "username", "name", "memberships"),
    *("created_at", "last_used_at"),
)
WEBHOOK: Final = (
    *("id", "url", "description", "events", "state", "disabled_reason", "failing_since"),
    *("created_by", "created_at"),
)
TABLES: Final[Mapping[str, tuple[Any, tuple[str, ...]]]] = {
    "members": (User, MEMBER),
    "identities": (Identity, IDENTITY),
    "invitations": (Invitation, ("email", "roles", "labels", "created_at", "expires_at")),
    "domains": (Domain, ("domain", "role", "verified_at", "created_at")),
    "environments": (Environment, ("slug", "name", "is_built_in", "created_at", "deleted_at")),
    "api_keys": (
        ApiKey,
        ("id", "name", "hint", "role", "scopes", "created_at", "expires_at", "revoked_at"),
    ),
    "webhooks": (WebhookEndpoint, WEBHOOK),
}


def write(organization_id: int, archive: Archive) -> None:
    """Add the organization, its policy, members, environments, webhooks and audit trail."""
    row = Organization.objects.filter(pk=organization_id).values(*ORGANIZATION)
    archive.records("organization.ndjson", row)
    for name, (model, columns) in TABLES.items():
        archive.records(f"{name}.ndjson", _rows(organization_id, model, columns))
    archive.records("audit.ndjson", trail.rows(trail.of_organization(organization_id)))


def _rows(
    organization_id: int, model: Any, columns: tuple[str, ...]
) -> Iterable[Mapping[str, Any]]:
    rows = model.scoped.within_organization(organization_id).order_by("pk").values(*columns)
    found: Iterable[Mapping[str, Any]] = rows.iterator(chunk_size=1000)
    return found
