"""Checks of the programs that copy databases: backups, clones, moves and dumps."""

from collections.abc import Iterator
from typing import Final

from django.db import connection

from operations.doctor.findings import Finding, Level
from sqlgateway.databases.copies import ProgramsMissing, programs
from sqlgateway.models import Cluster

SUBJECT: Final = "programs"


def check_programs() -> Iterator[Finding]:
    """Check that pg_dump and pg_restore are installed for the version of each server."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int")
        versions = {int(cursor.fetchone()[0])}
    rows = Cluster.objects.exclude(state=Cluster.State.CLOSED).exclude(server_version=0)
    versions.update(rows.values_list("server_version", flat=True))
    for major in sorted({version // 10_000 for version in versions}):
        try:
            found = programs.folder(major)
        except ProgramsMissing as exc:
            message = f"No backup, clone or move of a server of PostgreSQL {major} can be made."
            yield Finding(SUBJECT, Level.FAILED, message, str(exc))
        else:
            message = f"pg_dump and pg_restore for PostgreSQL {major} are in {found}."
            yield Finding(SUBJECT, Level.OK, message)
