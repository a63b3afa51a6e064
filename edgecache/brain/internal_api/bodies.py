"""Whose call it is: the tenant in a body, a query or a path."""

from collections.abc import Mapping

from edgecache.brain.core.share_key import use_share_of_organization
from edgecache.brain.core.values import EnvironmentKey
from edgecache.protocol.fields import FieldReader


def take_tenant(fields: FieldReader) -> EnvironmentKey:
    """Take the tenant of a call, which is charged to it."""
    tenant = EnvironmentKey(
        fields.integer("organization_id", minimum=1), fields.integer("environment_pk", minimum=1)
    )
    use_share_of_organization(tenant.organization_id)
    return tenant


def tenant_of(query: Mapping[str, str]) -> EnvironmentKey:
    """Return the tenant that a query or a path names, alone. Raises MalformedMessage."""
    fields = FieldReader(dict(query), is_text=True)
    tenant = take_tenant(fields)
    fields.finish()
    return tenant
