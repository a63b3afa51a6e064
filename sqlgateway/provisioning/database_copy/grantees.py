"""Roles that a dump grants something to, and that are no more.

While a database is read, its reader may be granted what the admin took away from itself
(``reading``). Another dump of that moment names it, and its privileges could not be restored.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from sqlgateway.provisioning import names
from sqlgateway.provisioning.clusters import Address, administer
from sqlgateway.provisioning.database_copy import programs
from sqlgateway.provisioning.database_copy.archives import Contents

NAME: Final = re.compile(rf"\b{names.ROLE_PREFIX}[{names.ALPHABET}]{{{names.LENGTH}}}\b")
# A dump may be hostile.
MAX_GRANTEES: Final = 100


@contextmanager
def stand_ins(
    address: Address, dbname: str, file: Path, contents: Contents, *, major: int
) -> Iterator[None]:
    """Have roles of these names, that may do nothing, while a dump's privileges are restored.

    Raises CopyFailed, EngineUnavailable.
    """
    text = programs.print_entries(file, contents.privileges, major=major)
    made = _make(address, dbname, sorted(set(NAME.findall(text))))
    try:
        yield
    finally:
        with administer(address, dbname) as inside:
            for name in made:
                # Another restore of the same dump may be at it; then its end drops the role.
                with suppress(psycopg.errors.DependentObjectsStillExist):
                    role = sql.Identifier(name)
                    # It owns nothing; this revokes.
                    inside.execute(sql.SQL("DROP OWNED BY {role}").format(role=role))
                    inside.execute(sql.SQL("DROP ROLE {role}").format(role=role))


def _make(address: Address, dbname: str, wanted: list[str]) -> list[str]:
    made: list[str] = []
    with administer(address, dbname) as inside:
        rows = inside.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [wanted])
        known = {str(name) for (name,) in rows}
        for name in [each for each in wanted if each not in known][:MAX_GRANTEES]:
            with suppress(psycopg.errors.DuplicateObject):
                inside.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
                made.append(name)
    return made
