"""Copy owners and privileges of a tenant's objects from one database to another.

They are read from the catalogues. The three roles are represented by their kind, because the roles
of the target may have other names. pg_restore cannot do this: the target's default privileges would
grant what the source's admin had revoked, and a function of an operator would run as the admin.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import psycopg
from psycopg import sql

from common.permissions import Role

PUBLIC: Final = "PUBLIC"
ALL: Final = "ALL"
# The kinds of pg_default_acl, and acldefault's letter of each.
DEFAULTS: Final = {
    "r": ("TABLES", "r"),
    "S": ("SEQUENCES", "s"),
    "f": ("ROUTINES", "f"),
    "T": ("TYPES", "T"),
    "n": ("SCHEMAS", "n"),
}
# (owner of a default, schema of a default, object, column, letter, privileges)
ENTRIES: Final = """
WITH own AS (
    SELECT oid FROM pg_namespace
    WHERE nspname NOT LIKE 'pg\\_%%' AND nspname <> 'information_schema'
),
objects AS (
    SELECT '' AS owner, '' AS inside, format('%%s %%s',
            CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, oid::regclass) AS object,
        '' AS attribute, CASE relkind WHEN 'S' THEN 's' ELSE 'r' END AS letter,
        relacl AS acl, relowner AS owned_by, 'pg_class'::regclass AS class, oid
    FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        AND relnamespace IN (SELECT oid FROM own)
    UNION ALL
    SELECT '', '', format('TABLE %%s', attrelid::regclass), quote_ident(attname), 'c',
        attacl, relowner, 'pg_class'::regclass, attrelid
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE attacl IS NOT NULL AND NOT attisdropped AND relnamespace IN (SELECT oid FROM own)
    UNION ALL
    SELECT '', '', format('ROUTINE %%s', oid::regprocedure), '', 'f',
        proacl, proowner, 'pg_proc'::regclass, oid
    FROM pg_proc WHERE pronamespace IN (SELECT oid FROM own)
    UNION ALL
    SELECT '', '', format('TYPE %%I.%%I', nspname, typname), '', 'T',
        typacl, typowner, 'pg_type'::regclass, pg_type.oid
    FROM pg_type JOIN pg_namespace ON pg_namespace.oid = typnamespace
    WHERE typacl IS NOT NULL AND typtype <> 'm' AND typnamespace IN (SELECT oid FROM own)
    UNION ALL
    SELECT '', '', format('SCHEMA %%I', nspname), '', 'n',
        nspacl, nspowner, 'pg_namespace'::regclass, oid
    FROM pg_namespace WHERE oid IN (SELECT oid FROM own)
    UNION ALL
    SELECT rolname, '', kind.object, '', kind.letter, defaclacl, role.oid,
        'pg_default_acl'::regclass, 0
    FROM pg_roles AS role
    CROSS JOIN unnest(%(kinds)s::"char"[], %(objects)s::text[], %(letters)s::text[])
        AS kind (type, object, letter)
    LEFT JOIN pg_default_acl ON defaclrole = role.oid AND defaclobjtype = kind.type
        AND defaclnamespace = 0
    WHERE rolname = ANY(%(roles)s)
    UNION ALL
    SELECT rolname, quote_ident(nspname), kind.object, '', kind.letter, defaclacl, role.oid,
        'pg_default_acl'::regclass, 0
    FROM pg_default_acl JOIN pg_roles AS role ON role.oid = defaclrole
    JOIN pg_namespace ON pg_namespace.oid = defaclnamespace
    JOIN unnest(%(kinds)s::"char"[], %(objects)s::text[], %(letters)s::text[])
        AS kind (type, object, letter) ON kind.type = defaclobjtype
    WHERE rolname = ANY(%(roles)s)
)
SELECT objects.owner, inside, object, attribute, letter,
    CASE grantee WHEN 0 THEN 'PUBLIC' ELSE rolname END, privilege_type, is_grantable
FROM objects
LEFT JOIN LATERAL aclexplode(
    coalesce(acl, acldefault(letter::"char", owned_by))
) AS granted ON true
LEFT JOIN pg_roles ON pg_roles.oid = grantee
WHERE NOT EXISTS (
    SELECT FROM pg_depend
    WHERE classid = class AND objid = objects.oid AND deptype = 'e' AND objects.oid <> 0
)
"""
EVERYTHING: Final = """
SELECT letter, array_agg(privilege_type)
FROM unnest(ARRAY['r', 's', 'f', 'T', 'n']) AS letter,
    LATERAL aclexplode(acldefault(letter::"char", 10)) WHERE grantee = 10 GROUP BY letter
"""
OWNERS: Final = """
SELECT object.type, object.identity, rolname
FROM pg_shdepend JOIN pg_roles ON pg_roles.oid = refobjid
CROSS JOIN LATERAL pg_identify_object(classid, objid, objsubid) AS object
WHERE deptype = 'o' AND refclassid = 'pg_authid'::regclass AND rolname = ANY(%(roles)s)
    AND classid <> 'pg_default_acl'::regclass
    AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# The platform's own schema and tables, which pg_restore creates as the admin's.
OF_PLATFORM: Final = """
SELECT 'SCHEMA', quote_ident(nspname) FROM pg_namespace JOIN pg_roles ON pg_roles.oid = nspowner
WHERE nspname = 'zonal' AND rolname <> ALL(%(roles)s)
UNION ALL
SELECT 'TABLE', relation.oid::regclass::text FROM pg_class AS relation
JOIN pg_namespace AS own ON own.oid = relnamespace JOIN pg_roles ON pg_roles.oid = relowner
WHERE nspname = 'zonal' AND relkind = 'r' AND rolname <> ALL(%(roles)s)
"""
# Types for which pg_identify_object and ALTER have different words.
STATEMENT_WORDS: Final = {"composite type": "TYPE", "statistics object": "STATISTICS"}


class Object(NamedTuple):
    """An object with privileges, or future objects of an owner (default privileges).

    owner, schema: of future objects; empty for an object.
    name: such as ``TABLE public.t`` or ``TABLES``.
    """

    owner: str
    schema: str
    name: str


class Grant(NamedTuple):
    """One privilege. who: a kind of role, or PUBLIC."""

    on: Object
    column: str
    who: str
    privilege: str
    is_grantable: bool


@dataclass(frozen=True, slots=True)
class Privileges:
    """All owners and privileges in a database.

    owners: (type, identity, kind of role) of objects that are not the admin's.
    of_platform: (type, identity) of the platform's objects.
    """

    objects: frozenset[Object]
    grants: frozenset[Grant]
    owners: frozenset[tuple[str, str, str]]
    of_platform: frozenset[tuple[str, str]]


def read(inside: psycopg.Connection, roles: Mapping[Role, str]) -> Privileges:
    """Return owners and privileges in the database of the administrator's connection."""
    kinds = {name: str(kind) for kind, name in roles.items()} | {PUBLIC: PUBLIC}
    values = {
        "roles": list(roles.values()),
        "kinds": list(DEFAULTS),
        "objects": [words for words, _ in DEFAULTS.values()],
        "letters": [letter for _, letter in DEFAULTS.values()],
    }
    everything = {
        str(letter): frozenset(privileges)
        for letter, privileges in inside.execute(EVERYTHING.encode()).fetchall()
    }
    objects: set[Object] = set()
    held: dict[tuple[Object, str, str, bool, str], set[str]] = defaultdict(set)
    for owner, schema, name, column, letter, who, privilege, is_grantable in inside.execute(
        ENTRIES.encode(), values
    ):
        on = Object(kinds.get(owner, ""), schema, name)
        objects.add(on)
        if who in kinds:
            held[on, column, kinds[who], is_grantable, letter].add(privilege)
    owners = inside.execute(OWNERS.encode(), values).fetchall()
    platforms = inside.execute(OF_PLATFORM.encode(), values).fetchall()
    return Privileges(
        frozenset(objects),
        frozenset(_grants(held, everything)),
        frozenset((kind, name, kinds[who]) for kind, name, who in owners if kinds[who] != "admin"),
        frozenset((str(kind), str(name)) for kind, name in platforms),
    )


def apply(inside: psycopg.Connection, roles: Mapping[Role, str], wanted: Privileges) -> None:
    """Set owners and privileges in the database of the administrator's connection.

    Owners that cannot be set are skipped: the caller reads the privileges again and compares them.
    """
    identifiers = {
        str(kind): sql.Identifier(name).as_string(inside) for kind, name in roles.items()
    }
    identifiers[PUBLIC] = PUBLIC
    for kind, name in wanted.of_platform:
        inside.execute(f"ALTER {kind} {name} OWNER TO CURRENT_USER".encode())
    for kind, name, who in wanted.owners:
        words = STATEMENT_WORDS.get(kind, kind.upper())
        # The owner of a sequence is that of its table, and cannot be changed alone.
        _attempt(inside, f"ALTER {words} {name} OWNER TO {identifiers[who]}")
    statements = list(_statements(identifiers, wanted))
    with inside.transaction():
        for start in range(0, len(statements), 200):
            inside.execute("; ".join(statements[start : start + 200]).encode())


def forget_defaults(inside: psycopg.Connection, roles: Mapping[Role, str]) -> None:
    """Remove the platform's default privileges on future objects of the database."""
    admin = sql.Identifier(roles["admin"])
    others = sql.SQL(", ").join(
        [sql.SQL(PUBLIC), sql.Identifier(roles["operator"]), sql.Identifier(roles["reader"])]
    )
    for words, _ in DEFAULTS.values():
        on = sql.SQL(words)
        inside.execute(
            sql.SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {admin} REVOKE ALL ON {on} FROM {others}"
            ).format(admin=admin, on=on, others=others)
        )
    for privilege, words in (("EXECUTE", "ROUTINES"), ("USAGE", "TYPES")):
        # PostgreSQL's own defaults.
        inside.execute(
            sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {} GRANT {} ON {} TO PUBLIC").format(
                admin, sql.SQL(privilege), sql.SQL(words)
            )
        )


def _grants(
    held: Mapping[tuple[Object, str, str, bool, str], set[str]],
    everything: Mapping[str, frozenset[str]],
) -> Iterator[Grant]:
    for (on, column, who, is_grantable, letter), privileges in held.items():
        # ALL, because a newer server may have more privileges.
        is_all = not column and privileges == everything[letter]
        for privilege in [ALL] if is_all else privileges:
            yield Grant(on, column, who, privilege, is_grantable)


def _statements(identifiers: Mapping[str, str], wanted: Privileges) -> Iterator[str]:
    everyone = ", ".join(identifiers.values())
    for on in wanted.objects:
        yield f"{_prefix(on, identifiers)}REVOKE ALL ON {on.name} FROM {everyone}"
    for on, column, who, privilege, is_grantable in wanted.grants:
        columns = f" ({column})" if column else ""
        option = " WITH GRANT OPTION" if is_grantable else ""
        yield (
            f"{_prefix(on, identifiers)}GRANT {privilege}{columns} ON {on.name} "
            f"TO {identifiers[who]}{option}"
        )


def _prefix(on: Object, identifiers: Mapping[str, str]) -> str:
    if not on.owner:
        return ""
    place = f" IN SCHEMA {on.schema}" if on.schema else ""
    return f"ALTER DEFAULT PRIVILEGES FOR ROLE {identifiers[on.owner]}{place} "


def _attempt(inside: psycopg.Connection, statement: str) -> None:
    try:
        inside.execute(statement.encode())
    except psycopg.DatabaseError:
        if inside.closed:
            raise
