"""Settings of the control database and of the tenants' cluster."""

from typing import Any, Final

from psycopg import Error as PsycopgError
from psycopg.conninfo import conninfo_to_dict

from platform_site.env import Env, SettingError

SCHEMES: Final = ("postgresql", "postgres")


def control_url(env: Env) -> str:
    """Give DATABASE_URL.

    Raises SettingError.
    """
    return env.url(
        "DATABASE_URL",
        help_text="The control database; unset, `up` runs one of its own.",
        schemes=SCHEMES,
    )


def cluster_url(env: Env) -> str:
    """Give ZSQL_CLUSTER_URL, where tenants' databases are made.

    Raises SettingError.
    """
    return env.url(
        "ZSQL_CLUSTER_URL",
        help_text="The tenants' cluster, as a role that may create databases and roles; "
        "unset, `up` runs one of its own.",
        schemes=SCHEMES,
    )


def pool_size(env: Env) -> int:
    """Give ZDB_POOL_SIZE, the connections of one process to the control database.

    Raises SettingError.
    """
    return env.integer(
        "ZDB_POOL_SIZE",
        0,
        help_text="Connections to the control database per web process, shared by its threads; "
        "0 gives each thread a connection of its own that it keeps.",
        maximum=1000,
    )


def control_database(url: str, connections: int) -> dict[str, Any]:
    """Give Django's DATABASES entry for a libpq URL.

    connections: of a pool that the process's threads share; 0 is one a thread.
    Raises SettingError when libpq cannot read the URL.
    """
    try:
        parts = dict(conninfo_to_dict(url))
    except PsycopgError as exc:
        raise SettingError("DATABASE_URL", "is not a URL libpq can read.") from exc
    options: dict[str, Any] = {"connect_timeout": 2, "application_name": "zonal"}
    entry: dict[str, Any] = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", "") or "zonal",
        "USER": parts.pop("user", "") or "",
        "PASSWORD": parts.pop("password", "") or "",
        "HOST": parts.pop("host", "") or "",
        "PORT": str(parts.pop("port", "") or ""),
        "CONN_MAX_AGE": 0 if connections else None,
        "OPTIONS": options | parts,
    }
    if connections:
        # A lost database must be a quick 503, not a queue: hence the short timeout.
        options_pool = {"min_size": 1, "max_size": connections, "timeout": 2}
        entry["OPTIONS"]["pool"] = options_pool
    return entry
