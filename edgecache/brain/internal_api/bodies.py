"""Whose call it is: the tenant in a body, a query or a path."""

from collections.abc import Mapping

from edgecache.brain.core.share_key import use_share_of_organization
from edgecache.brain.core.values import EnvironmentKey
from edgecache.protocol.fields import Message, RowId, read


class TenantMessage(Message, frozen=True, kw_only=True):
    """A message that names the tenant of a call."""

    organization_id: RowId
    environment_pk: RowId


def charged_tenant(message: TenantMessage) -> EnvironmentKey:
    """Return the tenant of a call, which uses its share."""
    use_share_of_organization(message.organization_id)
    return EnvironmentKey(message.organization_id, message.environment_pk)


def tenant_of(query: Mapping[str, str]) -> EnvironmentKey:
    """Return the tenant that a query or a path names, alone. Raises MalformedMessage."""
    return charged_tenant(read(query, TenantMessage, is_text=True))
