"""Audit tags of environments."""

from audit.tags import AuditTag


class EnvironmentTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    ORGANIZATION_UPDATE = (
        "api:organization:update",
        "The organization was renamed.",
        "renamed the organization from {from} to {to}",
    )
    ENVIRONMENT_CREATE = (
        "api:environment:create",
        "An environment was created.",
        "created the environment {environment}",
    )
    ENVIRONMENT_UPDATE = (
        "api:environment:update",
        "An environment was renamed.",
        "renamed the environment {environment}",
    )
    ENVIRONMENT_DELETE = (
        "api:environment:delete",
        "An environment was deleted.",
        "deleted the environment {environment}",
    )
