"""Audit tags of the SQL gateway."""

from audit.tags import AuditTag


class SqlTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    ROLE_REPAIR = ("sql:role:repair", "A database role had been changed and was restored.")
    DATABASE_MOVE = ("sql:database:move", "A database was moved to another cluster.")
    ADMIN_DATABASE_MOVE = (
        "admin:database:move",
        "Staff had a database moved to another cluster.",
    )
    DATABASE_ROTATE = (
        "sql:database:rotate",
        "The passwords of a database's roles were replaced by new ones.",
    )
    ADMIN_DATABASE_ROTATE = (
        "admin:database:rotate",
        "Staff had the passwords of a database's roles replaced.",
    )
    ADMIN_QUOTA_SET = ("admin:quota:set", "Staff set the organization's own limits.")
    CLI_QUOTA_SET = ("cli:quota:set", "An operator set the organization's own limits.")
    DATABASE_RESTORE = ("sql:database:restore", "A database was replaced by a dump.")
    CLI_DATABASE_DUMP = (
        "cli:database:dump",
        "An operator wrote a database to a file; if it cannot be restored, with the reason.",
    )
    DATABASE_CLONE = (
        "sql:database:clone",
        "A database was filled with a copy of another one, or could not be: then with the reason.",
    )
    EXTENSION_INSTALL = (
        "sql:extension:install",
        "An extension was installed in a database.",
        "installed the extension {extension} in {environment}",
    )
    EXTENSION_REMOVE = (
        "sql:extension:remove",
        "An extension was removed from a database.",
        "removed the extension {extension} from {environment}",
    )
    QUERY_SAVE = (
        "sql:query:save",
        "A query was saved for the organization.",
        "saved the query {name}",
    )
    QUERY_UPDATE = (
        "sql:query:update",
        "A saved query was changed or renamed.",
        "changed the saved query {name}",
    )
    QUERY_DELETE = (
        "sql:query:delete",
        "A saved query was deleted.",
        "deleted the saved query {name}",
    )
