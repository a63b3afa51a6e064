"""An organization's domains and its members' identities, without secrets."""

from typing import Final

from common.archives import ZipWriter
from oauth.models import Domain, Identity
from organizations.organization_contents import rows_of

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


def write(organization_id: int, archive: ZipWriter) -> None:
    """Add the identities and the domains (settings.ORGANIZATION_CONTENTS)."""
    archive.records("identities.ndjson", rows_of(organization_id, Identity, IDENTITY))
    archive.records("domains.ndjson", rows_of(organization_id, Domain, DOMAIN))
