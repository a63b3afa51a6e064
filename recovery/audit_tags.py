"""Audit tags of recovery."""

from audit.tags import AuditTag


class RecoveryTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    RECOVERY_CREATE = ("api:recovery:create", "A recovery of an account was started.")
    RECOVERY_ANSWER = ("api:recovery:answer", "Security questions were answered.")
    RECOVERY_VERIFY = ("api:recovery:verify", "A mailed or texted recovery token was given.")
    RECOVERY_PROVE = (
        "api:recovery:prove",
        "The second of two independent proofs for a lost factor was given.",
    )
    RECOVERY_COMPLETE = (
        "api:recovery:complete",
        "A recovery set a new password, or removed a lost factor.",
    )
    RECOVERY_CANCEL = ("api:recovery:cancel", "A recovery was cancelled from a notified address.")
    RECOVERY_QUESTIONS_UPDATE = (
        "api:recovery_questions:update",
        "A user changed their security questions.",
        "changed their security questions",
    )
    MEMBER_RESET_FACTORS = (
        "api:member:reset_factors",
        "An admin reset a member's second factors.",
        "reset the second factors of {email}",
    )
    CLI_USER_LOCK = ("cli:user:lock", "An operator disabled a user.", "disabled {email}")
    CLI_USER_UNLOCK = (
        "cli:user:unlock",
        "An operator enabled a user, or reset the counts of wrong passwords and codes.",
        "enabled {email}, or reset the counts of wrong passwords and codes",
    )
    ADMIN_USER_UNLOCK = (
        "admin:user:unlock",
        "Staff reset a user's counts of wrong passwords and codes.",
        "reset the counts of wrong passwords and codes of {email}",
    )
