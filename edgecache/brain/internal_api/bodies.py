"""Whose call it is: the tenant in a body, a query or a path."""

from collections.abc import Mapping

from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.fair_share import use_share_of_organization
from edgecache.protocol.fields import Fields


def take_tenant(fields: Fields) -> Tenant:
    """Take the tenant of a call, which is charged to it."""
    tenant = Tenant(
        fields.integer("organization_id", minimum=1), fields.integer("environment_pk", minimum=1)
    )
    use_share_of_organization(tenant.organization_id)
    return tenant


def tenant_of(query: Mapping[str, str]) -> Tenant:
    """Return the tenant that a query or a path names, alone. Raises MalformedMessage."""
    fields = Fields(dict(query), is_text=True)
    tenant = take_tenant(fields)
    fields.finish()
    return tenant
