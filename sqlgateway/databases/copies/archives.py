"""Read the contents of a dump in pg_dump's custom format.

A dump is hostile input: anybody may have written it. Its SQL runs as the tenant's own admin role,
in a database of this tenant only. Entries about the platform's objects are left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlgateway.databases.copies import CopyFailed, programs
from sqlgateway.hardening.quota_guard import GUARD_NAME

MAGIC: Final = b"PGDMP"
# "217; 1259 16389 TABLE public items zr_abc", as pg_restore --list prints it.
ENTRY: Final = re.compile(r"(?P<id>\d+); \d+ \d+ (?P<what>.*)")
PRIVILEGES: Final = ("ACL ", "DEFAULT ACL ")
# Types of objects in schemas. pg_restore prints type, schema and name without quotes.
TYPES: Final = (
    r"(AGGREGATE|CHECK CONSTRAINT|COLLATION|CONSTRAINT|CONVERSION|DEFAULT|DOMAIN|FK CONSTRAINT"
    r"|FOREIGN TABLE|FUNCTION|INDEX( ATTACH)?|MATERIALIZED VIEW( DATA)?|OPERATOR( CLASS| FAMILY)?"
    r"|POLICY|PROCEDURE|ROW SECURITY|RULE|SEQUENCE( OWNED BY| SET)?|(SHELL )?TYPE|STATISTICS"
    r"|TABLE( ATTACH| DATA)?|TEXT SEARCH [A-Z]+|TRIGGER|VIEW|ACL|COMMENT|SECURITY LABEL)"
)
# Objects that a tenant may have created, but a restore does not create.
NOT_RESTORED: Final = re.compile(r"(PUBLICATION|SUBSCRIPTION|EVENT TRIGGER) - (?P<name>.*) \S*$")
# Objects that the platform has created already, or that no tenant may create.
LEFT_OUT: Final = re.compile(
    r"(ACL|COMMENT|SECURITY LABEL) (pg_catalog|information_schema) "
    r"|(ACL|COMMENT|SECURITY LABEL) - (SCHEMA (public|zonal)|LANGUAGE|EXTENSION|DATABASE)\b"
    # Objects in the platform's own schema. A name and an owner must follow: "TABLE DATA zonal
    # zr_abc" is the table zonal of a tenant's schema DATA.
    rf"|SCHEMA - (public|zonal) |{TYPES} zonal \S+ \S|DATABASE|EXTENSION - plpgsql"
    r"|SUBSCRIPTION|PUBLICATION|EVENT TRIGGER"
    rf"|TRIGGER \S+ .*{GUARD_NAME} "
)


@dataclass(frozen=True, slots=True)
class Contents:
    """The entries of a dump, by number.

    objects: entries that create objects or restore data.
    privileges: entries that restore privileges.
    foreign: entries of objects that the given admin role does not own.
    left_out: objects of the tenant that a restore does not create, such as ``PUBLICATION p``.
    """

    objects: Sequence[str]
    privileges: Sequence[str]
    foreign: Sequence[str]
    left_out: Sequence[str]


def read_contents(file: Path, admin_role: str, *, major: int) -> Contents:
    """Return the contents of a dump.

    Raises CopyFailed if the file is not a dump in custom format.
    """
    try:
        with file.open("rb") as opened:
            is_archive = opened.read(len(MAGIC)) == MAGIC
    except OSError as exc:
        raise CopyFailed(f"{file} cannot be read.") from exc
    if not is_archive:
        raise CopyFailed(f"{file} is not a dump in custom format (pg_dump --format=custom).")
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
        # Extensions and their objects have no owner in the list.
        if not what.endswith((f" {admin_role}", " ")):
            foreign.append(entry["id"])
    return Contents(objects, privileges, foreign, left_out)
