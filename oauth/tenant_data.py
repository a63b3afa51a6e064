"""An organization's domains and its members' identities, without secrets."""

from typing import Final

from common.archives import ZipWriter
from environments.tenant_data import TenantData
from oauth.models import Domain, Identity
from organizations.tenant_data import rows_of

IDENTITY: Final = (
    "user_id",
    "provider",
    "subject",
    "email",
    "username",
    "name",
    "memberships",
    "created_at",
    "last_used_at",
)
DOMAIN: Final = ("domain", "role", "verified_at", "created_at")


class OAuthData(TenantData):
    """Identities and domains."""

    def export(self, organization_id: int, archive: ZipWriter) -> None:
        """Add the identities and the domains."""
        archive.records("identities.ndjson", rows_of(organization_id, Identity, IDENTITY))
        archive.records("domains.ndjson", rows_of(organization_id, Domain, DOMAIN))
