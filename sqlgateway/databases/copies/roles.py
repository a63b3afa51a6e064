"""Create the roles that a dump grants privileges to, but that do not exist.

While a database is copied, the role that reads it may be granted privileges that the admin revoked
from itself (reading.py). Another dump that is made at that time contains this grant, which cannot
be restored after the role was dropped.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
from django.conf import settings
from django.utils import timezone
from psycopg import sql

from sqlgateway import names
from sqlgateway.clusters.servers import ClusterAddress, administer
from sqlgateway.databases.copies import programs, temporary_roles
from sqlgateway.databases.copies.archives import Contents

NAME: Final = re.compile(rf"\b{names.ROLE_PREFIX}[{names.ALPHABET}]{{{names.LENGTH}}}\b")
# The maximum number of roles, because a dump may be hostile.
MAX_GRANTEES: Final = 100


@contextmanager
def stand_ins(
    address: ClusterAddress, dbname: str, file: Path, contents: Contents, *, major: int
) -> Iterator[None]:
    """Create missing roles without any rights, while a dump's privileges are restored.

    Raises CopyFailed, EngineUnavailable.
    """
    text = programs.print_entries(file, contents.privileges, major=major)
    made = _make(address, dbname, sorted(set(NAME.findall(text))))
    try:
        yield
    finally:
        with administer(address, dbname) as inside:
            for name in made:
                # Another restore of the same dump may use the role, and then drops it at its end.
                with suppress(psycopg.errors.DependentObjectsStillExist):
                    temporary_roles.drop(inside, name)


def _make(address: ClusterAddress, dbname: str, wanted: list[str]) -> list[str]:
    made: list[str] = []
    # A crash may leave the roles behind (temporary_roles.py).
    until = timezone.now() + timedelta(seconds=settings.SQL.copy_timeout_s)
    with administer(address, dbname) as inside:
        rows = inside.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [wanted])
        known = {str(name) for (name,) in rows}
        for name in [each for each in wanted if each not in known][:MAX_GRANTEES]:
            with suppress(psycopg.errors.DuplicateObject):
                inside.execute(
                    sql.SQL("CREATE ROLE {} NOLOGIN VALID UNTIL {}").format(
                        sql.Identifier(name), sql.Literal(until.isoformat())
                    )
                )
                made.append(name)
    return made
