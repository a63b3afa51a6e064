"""Audit tags of backups."""

from audit.tags import AuditTag


class OperationTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    CLI_BACKUP_CREATE = ("cli:backup:create", "An operator or a timer made a backup.")
    CLI_BACKUP_DRILL = (
        "cli:backup:drill",
        "An operator recorded that a backup was restored elsewhere and compared.",
    )
    CLI_BACKUP_DELETE = ("cli:backup:delete", "An operator or a timer deleted older backups.")
    CLI_BACKUP_RESTORE = ("cli:backup:restore", "An operator restored a backup.")
