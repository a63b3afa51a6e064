"""Audit tags of the second factor."""

from audit.tags import AuditTag, by_outcome


class TwoFactorTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    FACTOR_CREATE = (
        "api:factor:create",
        "A second factor was set up.",
        "set up the second factor {method}",
    )
    FACTOR_DELETE = (
        "api:factor:delete",
        "A second factor was removed.",
        "removed the second factor {method}",
    )
    FACTOR_PREFER = (
        "api:factor:prefer",
        "A user chose their default second factor.",
        "made {method} their default second factor",
    )
    BACKUP_CODES_CREATE = (
        "api:backup_codes:create",
        "A user replaced their backup codes.",
        "replaced their backup codes",
    )
    PASSKEY_CREATE = (
        "api:passkey:create",
        "A passkey was registered.",
        "registered the passkey {name}",
    )
    PASSKEY_DELETE = ("api:passkey:delete", "A passkey was removed.", "removed the passkey {name}")
    PASSKEY_SIGN_COUNT_REGRESSION = (
        "api:passkey:sign_count_regression",
        "A passkey's counter went backwards: it may be a copy.",
    )
    CHALLENGE_VERIFY = (
        "api:challenge:verify",
        "A code or a passkey was given for a challenge.",
        by_outcome(success="proved a second factor", refused="gave a wrong code or passkey"),
    )
    SESSION_REAUTHENTICATE = (
        "api:session:reauthenticate",
        "A user gave their password again to confirm a change.",
        by_outcome(
            success="gave their password again to confirm a change",
            refused="gave a wrong password to confirm a change",
        ),
    )
    TRUSTED_DEVICE_CREATE = (
        "api:trusted_device:create",
        "A device was trusted.",
        "trusted a device",
    )
    TRUSTED_DEVICE_USE = (
        "api:trusted_device:use",
        "A trusted device replaced the second factor at a sign-in.",
        "used a trusted device in place of the second factor",
    )
    TRUSTED_DEVICE_DELETE = (
        "api:trusted_device:delete",
        "A trusted device was removed.",
        "removed a trusted device",
    )
    POLICY_UPDATE = (
        "api:policy:update",
        "The organization's policy on second factors changed.",
        "changed the policy on second factors",
    )
    ADMIN_MEMBER_RESET_FACTORS = (
        "admin:member:reset_factors",
        "Staff removed a user's second factors in the admin.",
        "removed the second factors of {email}",
    )
