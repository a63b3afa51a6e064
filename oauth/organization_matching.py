"""Find the organization that a new user joins by a verified domain or a mapped group."""

from dataclasses import dataclass, field

import structlog
from django.conf import settings

from environments.models import Organization
from oauth.errors import ProviderUnavailable
from oauth.models import Domain
from oauth.providers.profile import Memberships, Profile

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OrganizationMatch:
    """An organization to join, and the roles to get there."""

    organization: Organization
    roles: list[str] = field(default_factory=list)


def find(profile: Profile) -> OrganizationMatch | None:
    """Return the organization that a domain or a group names; None means a new organization.

    Raises ProviderUnavailable if the provider does not answer: an organization created by mistake
    would remain.
    """
    return _by_domain(profile.domain) or _by_group(profile)


def _by_domain(domain: str) -> OrganizationMatch | None:
    """Match the Workspace domain, which its administrators control, not the e-mail address."""
    if not domain:
        return None
    proven = Domain.unscoped.filter(  # unscoped: this determines the organization
        domain=domain, verified_at__isnull=False
    )
    found: Domain | None = proven.select_related("organization").first()
    return OrganizationMatch(found.organization, [found.role]) if found is not None else None


def _by_group(profile: Profile) -> OrganizationMatch | None:
    memberships = profile.memberships or Memberships()
    for mapping in settings.OAUTH.providers[profile.provider].mappings:
        if mapping.group in memberships.unknown:
            raise ProviderUnavailable
        if mapping.group not in memberships.held:
            continue
        organization = Organization.objects.filter(pk=mapping.organization_id).first()
        if organization is not None:
            # Without roles: they are derived from the membership, and end with it.
            return OrganizationMatch(organization)
        log.warning("mapped_organization_missing", organization_id=mapping.organization_id)
    return None
