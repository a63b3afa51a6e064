"""An organization's own data and those of the layers below, without secrets."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from accounts.models import ApiKey, User
from audit import trail
from common.archives import ZipWriter
from environments.models import Environment, Organization
from environments.tenant_data import TenantData
from organizations.models import Invitation
from outbox.models import WebhookEndpoint

ORGANIZATION: Final = (
    "id",
    "name",
    "created_at",
    "mfa_required",
    "mfa_required_since",
    "mfa_allowed_methods",
    "mfa_grace_period_days",
    "mfa_updated_at",
    "recovery_questions_enabled",
)
MEMBER: Final = (
    "id",
    "email",
    "email_verified_at",
    "roles",
    "derived_roles",
    "labels",
    "is_active",
    "created_at",
)
WEBHOOK: Final = (
    "id",
    "url",
    "description",
    "events",
    "state",
    "disabled_reason",
    "failing_since",
    "created_by",
    "created_at",
)
TABLES: Final[Mapping[str, tuple[Any, tuple[str, ...]]]] = {
    "members": (User, MEMBER),
    "invitations": (Invitation, ("email", "roles", "labels", "created_at", "expires_at")),
    "environments": (Environment, ("slug", "name", "is_built_in", "created_at", "deleted_at")),
    "api_keys": (
        ApiKey,
        ("id", "name", "hint", "role", "scopes", "created_at", "expires_at", "revoked_at"),
    ),
    "webhooks": (WebhookEndpoint, WEBHOOK),
}


class OrganizationData(TenantData):
    """The organization, and the data of the apps below."""

    def export(self, organization_id: int, archive: ZipWriter) -> None:
        """Add the organization, its policy, members, environments, webhooks and audit trail."""
        row = Organization.objects.filter(pk=organization_id).values(*ORGANIZATION)
        archive.records("organization.ndjson", row)
        for name, (model, columns) in TABLES.items():
            archive.records(f"{name}.ndjson", rows_of(organization_id, model, columns))
        archive.records("audit.ndjson", trail.rows(trail.of_organization(organization_id)))


def rows_of(
    organization_id: int, model: Any, columns: tuple[str, ...]
) -> Iterable[Mapping[str, Any]]:
    """Return columns of an organization's rows, reading a limited number at a time."""
    rows = model.objects.filter(organization_id=organization_id).order_by("pk").values(*columns)
    found: Iterable[Mapping[str, Any]] = rows.iterator(chunk_size=1000)
    return found
