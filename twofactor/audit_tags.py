"""Audit tags of the second factor."""

from audit.tags import AuditTag


class TwoFactorTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    FACTOR_CREATE = ("api:factor:create", "A second factor was set up.")
    FACTOR_DELETE = ("api:factor:delete", "A second factor was removed.")
    FACTOR_PREFER = ("api:factor:prefer", "A user chose their default second factor.")
    BACKUP_CODES_CREATE = ("api:backup_codes:create", "A user replaced their backup codes.")
    PASSKEY_CREATE = ("api:passkey:create", "A passkey was registered.")
    PASSKEY_DELETE = ("api:passkey:delete", "A passkey was removed.")
    PASSKEY_SIGN_COUNT_REGRESSION = (
        "api:passkey:sign_count_regression",
        "A passkey's counter went backwards: it may be a copy.",
    )
    CHALLENGE_VERIFY = ("api:challenge:verify", "A code or a passkey was given for a challenge.")
    SESSION_REAUTHENTICATE = (
        "api:session:reauthenticate",
        "A user gave their password again to confirm a change.",
    )
    TRUSTED_DEVICE_CREATE = ("api:trusted_device:create", "A device was trusted.")
    TRUSTED_DEVICE_USE = (
        "api:trusted_device:use",
        "A trusted device replaced the second factor at a sign-in.",
    )
    TRUSTED_DEVICE_DELETE = ("api:trusted_device:delete", "A trusted device was removed.")
    POLICY_UPDATE = ("api:policy:update", "The organization's policy on second factors changed.")
    ADMIN_MEMBER_RESET_FACTORS = (
        "admin:member:reset_factors",
        "Staff removed a user's second factors in the admin.",
    )
