"""Audit tags of accounts."""

from platform_site.lib.audit import AuditTag


class AccountTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    ORGANIZATION_CREATE = (
        "api:organization:create",
        "A sign-up created an organization and its first admin.",
    )
    SESSION_CREATE = (
        "api:session:create",
        "A sign-in succeeded, was refused, or requires a second factor: see the outcome.",
    )
    SESSION_NEW_DEVICE = (
        "api:session:new_device",
        "A user signed in from a kind of program and a network not seen before.",
    )
    TERMINAL_SIGN_IN_ALLOW = (
        "api:terminal_sign_in:allow",
        "A user allowed a program in a terminal to sign in as them.",
    )
    TERMINAL_SIGN_IN_DENY = (
        "api:terminal_sign_in:deny",
        "A user denied a program in a terminal to sign in as them.",
    )
    SESSION_SWITCH = (
        "api:session:switch",
        "A session was exchanged for one in another environment.",
    )
    SESSION_DELETE = (
        "api:session:delete",
        "A user signed out, or ended one of their own sessions.",
    )
    SESSION_DELETE_OTHERS = (
        "api:session:delete_others",
        "A user ended all of their other sessions.",
    )
    SESSION_REFRESH_REUSE_DETECTED = (
        "api:session:refresh_reuse_detected",
        "A used refresh token was sent again, and every session of its sign-in ended.",
    )
    PERMISSION_DENY = (
        "api:permission:deny",
        "A caller lacked a permission inside its own organization.",
    )
    PASSWORD_UPDATE = (
        "api:password:update",
        "A user changed their password, or gave the present one wrongly.",
    )
    EMAIL_BEGIN_CHANGE = ("api:email:begin_change", "A user asked to change their e-mail address.")
    EMAIL_CANCEL_CHANGE = (
        "api:email:cancel_change",
        "A change of e-mail address was cancelled.",
    )
    EMAIL_UPDATE = ("api:email:update", "A user's e-mail address changed.")
    EMAIL_VERIFY = ("api:email:verify", "A user verified their e-mail address.")
    EMAIL_RELEASE = (
        "api:email:release",
        "An unverified address was taken from an account, for the owner of its mailbox.",
    )
    SIGNUP_LINK_USE = ("api:signup_link:use", "A user signed up with a mailed link.")
    INVITATION_CREATE = ("api:invitation:create", "A member sent an invitation.")
    INVITATION_DELETE = ("api:invitation:delete", "An invitation was revoked.")
    INVITATION_ACCEPT = ("api:invitation:accept", "An invitation was accepted.")
    MEMBER_CREATE = (
        "api:member:create",
        "An account was created for a member of a provider's organization or a verified domain.",
    )
    MEMBER_UPDATE = ("api:member:update", "A member's roles, labels or access changed.")
    MEMBER_DELETE = ("api:member:delete", "A member was removed.")
    IDENTITY_CREATE = (
        "api:identity:create",
        "An account at a provider was linked, or linking was refused.",
    )
    IDENTITY_DELETE = ("api:identity:delete", "An account at a provider was unlinked.")
    DOMAIN_CREATE = ("api:domain:create", "An organization claimed a domain.")
    DOMAIN_VERIFY = ("api:domain:verify", "A claimed domain was verified by its DNS record.")
    DOMAIN_DELETE = ("api:domain:delete", "A domain was removed.")
    ORGANIZATION_DELETE = (
        "api:organization:delete",
        "An admin requested the deletion of the organization.",
    )
    ORGANIZATION_KEEP = (
        "api:organization:keep",
        "An admin cancelled the deletion of the organization.",
    )
    ORGANIZATION_EXPORT = (
        "api:organization:export",
        "An admin requested an export of the organization's data.",
    )
    ORGANIZATION_DOWNLOAD = (
        "api:organization:download",
        "An admin downloaded an export of the organization's data.",
    )
    ORGANIZATION_DELETE_EXPORT = (
        "api:organization:delete_export",
        "An admin deleted an export of the organization's data.",
    )
    CLI_AUDIT_EXPORT = ("cli:audit:export", "An operator exported events of the audit trail.")
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
    API_KEY_CREATE = ("api:api_key:create", "An admin created an API key.")
    API_KEY_REVOKE = ("api:api_key:revoke", "An admin revoked an API key.")
    WEBHOOK_CREATE = ("api:webhook:create", "An admin added a webhook.")
    WEBHOOK_UPDATE = ("api:webhook:update", "An admin changed a webhook.")
    WEBHOOK_ROTATE = ("api:webhook:rotate", "An admin replaced a webhook's secret.")
    WEBHOOK_DELETE = ("api:webhook:delete", "An admin removed a webhook.")
    WEBHOOK_RESEND = ("api:webhook:resend", "An admin sent a delivery again.")
    SYSTEM_WEBHOOK_DISABLE = (
        "system:webhook:disable",
        "A webhook was disabled: its deliveries failed for days, or it answered 410 Gone.",
    )
    CLI_API_KEY_REVOKE = ("cli:api_key:revoke", "An operator revoked API keys.")
    CLI_ORGANIZATION_CREATE = ("cli:organization:create", "An operator created an organization.")
    CLI_MEMBER_CREATE = ("cli:member:create", "An operator created a member.")
    CLI_MEMBER_IMPORT = ("cli:member:import", "An operator imported members from a file.")
    CLI_MEMBER_UPDATE = ("cli:member:update", "An operator changed a member's roles.")
    CLI_USER_LOCK = ("cli:user:lock", "An operator disabled a user.")
    CLI_USER_UNLOCK = (
        "cli:user:unlock",
        "An operator enabled a user, or reset the counts of wrong passwords and codes.",
    )
    CLI_SESSION_DELETE = ("cli:session:delete", "An operator ended sessions.")
    CLI_STAFF_CREATE = ("cli:staff:create", "An operator created a member of staff.")
    CLI_STAFF_DELETE = ("cli:staff:delete", "An operator took a user's staff rights away.")
    CLI_KEY_ROTATE = ("cli:key:rotate", "An operator rotated the token keys.")
    CLI_BACKUP_CREATE = ("cli:backup:create", "An operator or a timer made a backup.")
    CLI_BACKUP_DRILL = (
        "cli:backup:drill",
        "An operator recorded that a backup was restored elsewhere and compared.",
    )
    CLI_BACKUP_DELETE = ("cli:backup:delete", "An operator or a timer deleted older backups.")
    CLI_BACKUP_RESTORE = ("cli:backup:restore", "An operator restored a backup.")
    ADMIN_USER_DISABLE = ("admin:user:disable", "Staff disabled a user in the admin.")
    ADMIN_USER_ENABLE = ("admin:user:enable", "Staff enabled a user in the admin.")
    ADMIN_USER_UNLOCK = (
        "admin:user:unlock",
        "Staff reset a user's counts of wrong passwords and codes.",
    )
    CLI_DELIVERY_RETRY = ("cli:delivery:retry", "An operator sent a mail or text message again.")
    ADMIN_DELIVERY_RETRY = ("admin:delivery:retry", "Staff sent a mail or text message again.")
    ADMIN_SESSION_CREATE = (
        "admin:session:create",
        "Staff signed in to the admin, or a sign-in there was refused: see the outcome.",
    )
    ADMIN_SESSION_PROVE = (
        "admin:session:prove",
        "Staff proved the second factor again for an action, or failed to: see the outcome.",
    )
    ADMIN_SESSION_DELETE = ("admin:session:delete", "Staff ended a user's sessions in the admin.")
    SYNC_DOMAIN_LAPSE = (
        "sync:domain:lapse",
        "A domain is no longer verified: its DNS record has been missing too long.",
    )
    SYNC_MEMBER_UPDATE = (
        "sync:member:update",
        "A member's memberships at a provider changed their roles.",
    )
    SYSTEM_KEY_SEE = (
        "system:key:see",
        "The platform used a key for the first time; kept to tell its age, and to refuse others.",
    )
    SYSTEM_MEMBER_DELETE = (
        "system:member:delete",
        "The platform deleted an account that had no address for 30 days.",
    )
