"""Which organization a newcomer joins, where one is named by a domain or a group."""

from dataclasses import dataclass, field

import structlog
from django.conf import settings

from accounts.oauth.errors import ProviderUnavailable
from accounts.oauth.models import Domain
from accounts.oauth.providers.profile import Memberships, Profile
from environments.models import Organization

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Home:
    """An organization to join, and the roles given there."""

    organization: Organization
    roles: list[str] = field(default_factory=list)


def organization_for(profile: Profile) -> Home | None:
    """Give the organization that a domain or a group names, None for one of the newcomer's own.

    Raises ProviderUnavailable where the provider would not say: an organization of one's own,
    made for want of an answer, would stay.
    """
    return _by_domain(profile.domain) or _by_group(profile)


def _by_domain(domain: str) -> Home | None:
    """Go by the Workspace domain, which its administrators give, and not by the address."""
    if not domain:
        return None
    proven = Domain.unscoped.filter(  # unscoped: this is what names the organization
        domain=domain, verified_at__isnull=False
    )
    found: Domain | None = proven.select_related("organization").first()
    return Home(found.organization, [found.role]) if found is not None else None


def _by_group(profile: Profile) -> Home | None:
    memberships = profile.memberships or Memberships()
    for mapping in settings.OAUTH_PROVIDERS[profile.provider].mappings:
        if mapping.group in memberships.unknown:
            raise ProviderUnavailable
        if mapping.group not in memberships.held:
            continue
        organization = Organization.objects.filter(pk=mapping.organization_id).first()
        if organization is not None:
            # Roles come of the membership itself, and go with it.
            return Home(organization)
        log.warning("mapped_organization_missing", organization_id=mapping.organization_id)
    return None
