"""An operator who limits an organization."""

from environments.models import Organization
from sqlgateway.clusters import placements
from tests.commands import facts


def limit(organization_id: int, **limits: int | str) -> None:
    """Set limits as an operator does, as every process has read them within half a minute."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
    facts("setquota", str(organization_id), *options)
    placements.PLACEMENT_CACHE.clear()


def the_organization() -> int:
    """Return the only one that there is."""
    return Organization.objects.get().pk
