"""Audit tags of organizations, their members and invitations."""

from collections.abc import Mapping
from typing import Any

from audit.tags import AuditTag


def changed_member(_outcome: str, data: Mapping[str, Any]) -> str:
    """Return what became of a member: its new roles, labels or access."""
    said = []
    if roles := data.get("roles"):
        said.append(f"made {{email}} {'an' if roles[0][0] in 'aeiou' else 'a'} {{roles}}")
    if "labels" in data:
        said.append("changed the labels of {email}")
    if "disabled" in data:
        said.append("disabled {email}" if data["disabled"] else "enabled {email}")
    return " and ".join(said)


class OrganizationTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    INVITATION_CREATE = (
        "api:invitation:create",
        "A member sent an invitation.",
        "invited {email} as {roles}",
    )
    INVITATION_DELETE = (
        "api:invitation:delete",
        "An invitation was revoked.",
        "revoked the invitation of {email}",
    )
    INVITATION_ACCEPT = (
        "api:invitation:accept",
        "An invitation was accepted.",
        "accepted an invitation as {roles}",
    )
    MEMBER_UPDATE = (
        "api:member:update",
        "A member's roles, labels or access changed.",
        changed_member,
    )
    MEMBER_DELETE = ("api:member:delete", "A member was removed.", "removed {email}")
    ORGANIZATION_DELETE = (
        "api:organization:delete",
        "An admin requested the deletion of the organization.",
        "requested the deletion of the organization",
    )
    ORGANIZATION_KEEP = (
        "api:organization:keep",
        "An admin cancelled the deletion of the organization.",
        "cancelled the deletion of the organization",
    )
    ORGANIZATION_EXPORT = (
        "api:organization:export",
        "An admin requested an export of the organization's data.",
        "requested an export of the organization's data",
    )
    ORGANIZATION_DOWNLOAD = (
        "api:organization:download",
        "An admin downloaded an export of the organization's data.",
        "downloaded an export of the organization's data",
    )
    ORGANIZATION_DELETE_EXPORT = (
        "api:organization:delete_export",
        "An admin deleted an export of the organization's data.",
        "deleted an export of the organization's data",
    )
    CLI_ORGANIZATION_EXPORT = (
        "cli:organization:export",
        "An operator exported an organization's data.",
    )
    SYSTEM_ORGANIZATION_DELETE = (
        "system:organization:delete",
        "The delay was over, and the organization was deleted.",
    )
    CLI_ORGANIZATION_DELETE = (
        "cli:organization:delete",
        "An operator requested the deletion of an organization, or deleted it.",
    )
    CLI_ORGANIZATION_CREATE = ("cli:organization:create", "An operator created an organization.")
    CLI_MEMBER_CREATE = (
        "cli:member:create",
        "An operator created a member.",
        "created the member {email}",
    )
    CLI_MEMBER_IMPORT = ("cli:member:import", "An operator imported members from a file.")
    CLI_MEMBER_UPDATE = (
        "cli:member:update",
        "An operator changed a member's roles.",
        changed_member,
    )
    ADMIN_USER_DISABLE = (
        "admin:user:disable",
        "Staff disabled a user in the admin.",
        "disabled {email}",
    )
    ADMIN_USER_ENABLE = (
        "admin:user:enable",
        "Staff enabled a user in the admin.",
        "enabled {email}",
    )
    ADMIN_SESSION_DELETE = (
        "admin:session:delete",
        "Staff ended a user's sessions in the admin.",
        "ended the sessions of {email}",
    )
