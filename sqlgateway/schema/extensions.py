"""Extensions of PostgreSQL in an environment's database.

They are installed by the environment's own admin role. A superuser is not needed in the tenant's
database, because the extensions of the list are *trusted*: the server runs their scripts itself.
"""

from typing import Any, Final

from psycopg import sql

from common.principals import Scope
from sqlgateway.errors import ExtensionInUse, ExtensionNotFound, SqlRefused
from sqlgateway.run import gateway
from sqlgateway.run.requests import ARRAYS, SqlRequest, SqlText

# These do not access files, other servers or the operating system.
ALLOWED: Final = (
    "btree_gin",
    "btree_gist",
    "citext",
    "fuzzystrmatch",
    "hstore",
    "intarray",
    "ltree",
    "pg_trgm",
    "pgcrypto",
    "tablefunc",
    "unaccent",
    "uuid-ossp",
    "vector",
)
# SQLSTATE dependent_objects_still_exist.
DEPENDENT_OBJECTS: Final = "2BP01"
AVAILABLE: Final = """
SELECT a.name, coalesce(e.extversion, a.default_version), e.extname IS NOT NULL, n.nspname,
  a.comment
FROM pg_catalog.pg_available_extensions AS a
JOIN pg_catalog.pg_available_extension_versions AS v ON v.name OPERATOR(pg_catalog.=) a.name
  AND v.version OPERATOR(pg_catalog.=) a.default_version AND v.trusted
LEFT JOIN pg_catalog.pg_extension AS e ON e.extname OPERATOR(pg_catalog.=) a.name
LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
WHERE a.name::pg_catalog.text OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[])
ORDER BY a.name
"""


def available(scope: Scope, *, request_id: str) -> list[dict[str, Any]]:
    """Return the extensions that can be installed, by name, and whether they are installed."""
    names = f"{{{','.join(ALLOWED)}}}"
    request = SqlRequest((SqlText(AVAILABLE, [names.encode()], ARRAYS),))
    rows = gateway.rows(scope, "admin", request, request_id=request_id)
    members = ("name", "version", "is_installed", "schema", "comment")
    return [dict(zip(members, row, strict=True)) for row in rows]


def install(scope: Scope, name: str, *, request_id: str) -> dict[str, Any]:
    """Install an extension unless it is installed, and return it as ``available`` does.

    Raises ExtensionNotFound, and the errors of ``POST /v1/sql``.
    """
    _find(scope, name, request_id)
    _run(scope, "CREATE EXTENSION IF NOT EXISTS {} CASCADE", name, request_id)
    return _find(scope, name, request_id)


def remove(scope: Scope, name: str, *, request_id: str) -> None:
    """Remove an installed extension.

    Raises ExtensionNotFound, also if it is not installed; ExtensionInUse if objects depend on it.
    """
    if not _find(scope, name, request_id)["is_installed"]:
        raise ExtensionNotFound
    try:
        _run(scope, "DROP EXTENSION IF EXISTS {}", name, request_id)
    except SqlRefused as exc:
        if exc.extra["sqlstate"] == DEPENDENT_OBJECTS:
            raise ExtensionInUse from None
        raise


def _find(scope: Scope, name: str, request_id: str) -> dict[str, Any]:
    for extension in available(scope, request_id=request_id):
        if extension["name"] == name:
            return extension
    raise ExtensionNotFound


def _run(scope: Scope, template: str, name: str, request_id: str) -> None:
    text = sql.SQL(template).format(sql.Identifier(name)).as_string(None)
    gateway.ask(scope, "admin", SqlRequest((SqlText(text, []),)), request_id=request_id)
