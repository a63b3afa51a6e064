"""The objects in the databases of the two tenants that attacks run in."""

from typing import Final

from sqlgateway.databases.tenant_databases import TEMPLATE
from sqlgateway.models import Database

# Each tenant's admin runs this once.
SETUP: Final = (
    "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE SEQUENCE s;"
    "CREATE MATERIALIZED VIEW v AS SELECT 1 AS one; CREATE VIEW seen AS SELECT * FROM t"
)
# The admin runs this before each attack: an empty schema for the attack's objects.
RESET: Final = "DROP SCHEMA IF EXISTS evil CASCADE; CREATE SCHEMA evil"
# Rows, privileges and settings as one value, which each role reads before and after an attack.
# Without settings of extensions, which depend on the libraries that a session has loaded.
STATE: Final = """
SELECT concat_ws(' ', (SELECT string_agg(id::text, ',') FROM public.t),
    has_table_privilege('public.t', 'INSERT'), has_table_privilege('public.t', 'TRUNCATE'),
    (SELECT last_value || is_called::text FROM public.s),
    (SELECT md5(string_agg(name || setting, ' ' ORDER BY name)) FROM pg_settings
     WHERE name NOT LIKE '%.%'))
"""


def names_of(own: Database, other: Database) -> dict[str, str]:
    """Return the names that attacks use, such as ``own_db``."""
    return {
        **{str(role): name for role, name in own.roles.items()},
        "own_db": own.dbname,
        "other_db": other.dbname,
        "other_role": other.admin_role,
        "template": TEMPLATE,
    }
