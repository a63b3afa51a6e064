"""Audit tags of environments."""

from audit.tags import AuditTag


class EnvironmentTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    ORGANIZATION_UPDATE = ("api:organization:update", "The organization was renamed.")
    ENVIRONMENT_CREATE = ("api:environment:create", "An environment was created.")
    ENVIRONMENT_UPDATE = ("api:environment:update", "An environment was renamed.")
    ENVIRONMENT_DELETE = ("api:environment:delete", "An environment was deleted.")
