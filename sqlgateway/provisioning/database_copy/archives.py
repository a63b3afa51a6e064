"""A dump in pg_dump's custom format: writing one, and reading one that is treated as hostile.

What is in a dump was written by a tenant, or by anyone. Its SQL runs as the tenant's own admin
role, in a database that holds nothing else; what concerns the platform's objects is left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlgateway.hardening.quota_guard import NAME as GUARD
from sqlgateway.provisioning.database_copy import CopyFailed, programs

MAGIC: Final = b"PGDMP"
# "217; 1259 16389 TABLE public items zr_abc", as pg_restore --list prints it.
ENTRY: Final = re.compile(r"(?P<id>\d+); \d+ \d+ (?P<what>.*)")
PRIVILEGES: Final = ("ACL ", "DEFAULT ACL ")
# Of what is in a schema. pg_restore prints type, schema and name without quotes.
TYPES: Final = (
    r"(AGGREGATE|CHECK CONSTRAINT|COLLATION|CONSTRAINT|CONVERSION|DEFAULT|DOMAIN|FK CONSTRAINT"
    r"|FOREIGN TABLE|FUNCTION|INDEX( ATTACH)?|MATERIALIZED VIEW( DATA)?|OPERATOR( CLASS| FAMILY)?"
    r"|POLICY|PROCEDURE|ROW SECURITY|RULE|SEQUENCE( OWNED BY| SET)?|(SHELL )?TYPE|STATISTICS"
    r"|TABLE( ATTACH| DATA)?|TEXT SEARCH [A-Z]+|TRIGGER|VIEW|ACL|COMMENT|SECURITY LABEL)"
)
# What a tenant may have made, and no restore makes again.
NOT_RESTORED: Final = re.compile(r"(PUBLICATION|SUBSCRIPTION|EVENT TRIGGER) - (?P<name>.*) \S*$")
# The platform made these already, or lets no tenant make them.
LEFT_OUT: Final = re.compile(
    r"(ACL|COMMENT|SECURITY LABEL) (pg_catalog|information_schema) "
    r"|(ACL|COMMENT|SECURITY LABEL) - (SCHEMA (public|zonal)|LANGUAGE|EXTENSION|DATABASE)\b"
    # The platform's own schema: no tenant may own what is in it. A name and an owner follow: "TABLE
    # DATA zonal zr_abc" is the table zonal of a tenant's schema DATA.
    rf"|SCHEMA - (public|zonal) |{TYPES} zonal \S+ \S|DATABASE|EXTENSION - plpgsql"
    r"|SUBSCRIPTION|PUBLICATION|EVENT TRIGGER"
    rf"|TRIGGER \S+ .*{GUARD} "
)


@dataclass(frozen=True, slots=True)
class Contents:
    """Numbers of a dump's entries. foreign: entries whose owner is not the admin role asked for.

    left_out: what the tenant made and a restore does not, such as ``PUBLICATION p``.
    """

    objects: Sequence[str]
    privileges: Sequence[str]
    foreign: Sequence[str]
    left_out: Sequence[str]


def read_contents(file: Path, admin_role: str, *, major: int) -> Contents:
    """Return what a dump holds that can be restored.

    Raises CopyFailed if the file is no dump in custom format.
    """
    try:
        with file.open("rb") as opened:
            is_archive = opened.read(len(MAGIC)) == MAGIC
    except OSError as exc:
        raise CopyFailed(f"{file} cannot be read.") from exc
    if not is_archive:
        raise CopyFailed(f"{file} is no dump in custom format (pg_dump --format=custom).")
    objects: list[str] = []
    privileges: list[str] = []
    foreign: list[str] = []
    left_out: list[str] = []
    for line in programs.list_archive(file, major=major):
        entry = ENTRY.match(line)
        if entry is None:
            continue
        what = entry["what"]
        if LEFT_OUT.match(what):
            if made := NOT_RESTORED.match(what):
                left_out.append(f"{made[1]} {made['name']}")
            continue
        (privileges if what.startswith(PRIVILEGES) else objects).append(entry["id"])
        # An extension, and what belongs to it, has no owner in the list.
        if not what.endswith((f" {admin_role}", " ")):
            foreign.append(entry["id"])
    return Contents(objects, privileges, foreign, left_out)
