"""Audit tags of accounts."""

from audit.tags import AuditTag, by_outcome


class AccountTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    ORGANIZATION_CREATE = (
        "api:organization:create",
        "A sign-up created an organization and its first admin.",
        "created the organization",
    )
    SESSION_CREATE = (
        "api:session:create",
        "A sign-in succeeded, was refused, or requires a second factor.",
        by_outcome(
            success="signed in",
            pending="began to sign in; the second factor is missing",
            refused="was refused at a sign-in",
        ),
    )
    SESSION_NEW_DEVICE = (
        "api:session:new_device",
        "A user signed in, or went on with a session, from a program and network not seen before.",
        "signed in, or went on, from a program and network not seen before",
    )
    TERMINAL_SIGN_IN_ALLOW = (
        "api:terminal_sign_in:allow",
        "A user allowed a terminal's sign-in.",
        "allowed the sign-in of a terminal",
    )
    TERMINAL_SIGN_IN_DENY = (
        "api:terminal_sign_in:deny",
        "A user denied a terminal's sign-in.",
        "denied the sign-in of a terminal",
    )
    SESSION_SWITCH = (
        "api:session:switch",
        "A session was exchanged for one in another environment.",
        "went on in the environment {environment}",
    )
    SESSION_DELETE = (
        "api:session:delete",
        "A user signed out, or ended one of their own sessions.",
        "signed out, or ended one of their own sessions",
    )
    SESSION_DELETE_OTHERS = (
        "api:session:delete_others",
        "A user ended all of their other sessions.",
        "ended all of their other sessions",
    )
    SESSION_REFRESH_REUSE_DETECTED = (
        "api:session:refresh_reuse_detected",
        "A used refresh token was sent again, and every session of its sign-in ended.",
    )
    SESSION_ROTATION_LOST = (
        "api:session:rotation_lost",
        "A refresh token was newer than the database, which had been set back: its session ended.",
    )
    PASSWORD_UPDATE = (
        "api:password:update",
        "A user changed their password, or gave the present one wrongly.",
        by_outcome(
            success="changed their password",
            refused="gave a wrong password in place of the present one",
        ),
    )
    EMAIL_BEGIN_CHANGE = (
        "api:email:begin_change",
        "A user asked to change their e-mail address.",
        "asked to change their e-mail address to {to}",
    )
    EMAIL_CANCEL_CHANGE = (
        "api:email:cancel_change",
        "A change of e-mail address was cancelled.",
        "cancelled a change of their e-mail address",
    )
    EMAIL_UPDATE = (
        "api:email:update",
        "A user's e-mail address changed.",
        "changed their e-mail address from {before} to {after}",
    )
    EMAIL_VERIFY = (
        "api:email:verify",
        "A user verified their e-mail address.",
        "verified the address {email}",
    )
    EMAIL_RELEASE = (
        "api:email:release",
        "An unverified address was taken from an account, for the owner of its mailbox.",
    )
    SIGNUP_LINK_USE = (
        "api:signup_link:use",
        "A user signed up with a mailed link.",
        "signed up with a mailed link",
    )
    API_KEY_CREATE = (
        "api:api_key:create",
        "An admin created an API key.",
        "created the API key {name} with the role {role}",
    )
    API_KEY_REVOKE = (
        "api:api_key:revoke",
        "An admin revoked an API key.",
        "revoked the API key {name}",
    )
    CLI_API_KEY_REVOKE = ("cli:api_key:revoke", "An operator revoked API keys.")
    CLI_SESSION_DELETE = (
        "cli:session:delete",
        "An operator ended sessions.",
        "ended the sessions of {email}",
    )
    CLI_PASSWORD_UPDATE = (
        "cli:password:update",
        "An operator set a user's password.",
        "set the password of {email}",
    )
    CLI_STAFF_CREATE = ("cli:staff:create", "An operator created a member of staff.")
    CLI_STAFF_DELETE = ("cli:staff:delete", "An operator took a user's staff rights away.")
    CLI_KEY_ROTATE = ("cli:key:rotate", "An operator rotated the token keys.")
    ADMIN_SESSION_CREATE = (
        "admin:session:create",
        "A sign-in to the admin succeeded or was refused.",
    )
    ADMIN_SESSION_PROVE = (
        "admin:session:prove",
        "Staff proved the second factor again, or failed to.",
    )
    SYSTEM_MEMBER_DELETE = (
        "system:member:delete",
        "The platform deleted an account that had no address for 30 days.",
    )
