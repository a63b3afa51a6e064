"""Audit tags of external sign-in."""

from audit.tags import AuditTag, by_outcome


class OAuthTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    MEMBER_CREATE = (
        "api:member:create",
        "An account was created for a member of a provider's organization or a verified domain.",
        "joined by a provider's organization or a verified domain",
    )
    IDENTITY_CREATE = (
        "api:identity:create",
        "An account at a provider was linked, or linking was refused.",
        by_outcome(
            success="linked an account at {provider}",
            refused="could not link an account at {provider}",
        ),
    )
    IDENTITY_DELETE = (
        "api:identity:delete",
        "An account at a provider was unlinked.",
        "unlinked an account at {provider}",
    )
    DOMAIN_CREATE = (
        "api:domain:create",
        "An organization claimed a domain.",
        "claimed the domain {domain}",
    )
    DOMAIN_VERIFY = (
        "api:domain:verify",
        "A claimed domain was verified by its DNS record.",
        "verified the domain {domain}",
    )
    DOMAIN_DELETE = ("api:domain:delete", "A domain was removed.", "removed the domain {domain}")
    SYNC_DOMAIN_LAPSE = (
        "sync:domain:lapse",
        "A domain is no longer verified: its DNS record is missing.",
    )
    SYNC_MEMBER_UPDATE = (
        "sync:member:update",
        "A member's memberships at a provider changed their roles.",
        "changed the roles of {email} by memberships at a provider",
    )
