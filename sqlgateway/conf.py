"""Settings of SQL over HTTP: databases, limits of requests and connections, transactions."""

from dataclasses import dataclass
from typing import Final

from common.conf import postgresql_url
from common.settings.table import (
    POSTGRESQL_SCHEMES,
    integer,
    url,
)

MIB: Final = 2**20
# An answer's rows are in memory several times: in libpq, encoded, in parts, and in the body.
RESULT_COPIES: Final = 8
MIN_REQUEST_BYTES: Final = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSettings:
    """The cluster of tenants' databases, and the limits of a request and of a process."""

    cluster_url: str = url(
        "ZSQL_CLUSTER_URL",
        "The tenants' cluster, as a superuser; unset, `up` runs its own.",
        schemes=POSTGRESQL_SCHEMES,
        parse=postgresql_url,
    )
    timeout_ms: int = integer(
        "ZSQL_TIMEOUT_MS",
        "Longest run of one SQL request; `manage.py setquota` gives an organization a lower limit.",
        default=30_000,
        unit="ms",
        minimum=1,
        maximum=600_000,
    )
    max_rows: int = integer(
        "ZSQL_MAX_ROWS",
        "Rows of one result in JSON; `manage.py setquota` gives an organization a lower limit.",
        default=10_000,
        minimum=1,
        maximum=1_000_000,
    )
    max_bytes: int = integer(
        "ZSQL_MAX_BYTES",
        "Rows of one JSON response; `manage.py setquota` gives an organization a lower limit.",
        default=8 * MIB,
        unit="bytes",
        minimum=1_024,
        maximum=256 * MIB,
    )
    results_bytes: int = integer(
        "ZSQL_RESULTS_BYTES",
        "Memory of all large results of a process, each of which counts as 8 times "
        "ZSQL_MAX_BYTES, at least 64 MiB; more results wait, then get 503.",
        default=512 * MIB,
        unit="bytes",
        minimum=64 * MIB,
        maximum=1024 * 1024 * MIB,
    )
    body_limit_bytes: int = integer(
        "ZSQL_BODY_LIMIT_BYTES",
        "Largest body of POST /v1/sql; `manage.py setquota` gives an organization a lower limit.",
        default=MIB,
        unit="bytes",
        minimum=1_024,
        maximum=16 * MIB,
    )
    import_limit_bytes: int = integer(
        "ZSQL_IMPORT_LIMIT_BYTES",
        "Largest body of POST /v1/sql/import, unpacked; `manage.py setquota` gives an "
        "organization a lower limit.",
        default=1024 * MIB,
        unit="bytes",
        minimum=1_024,
        maximum=1024 * 1024 * MIB,
    )
    import_timeout_s: int = integer(
        "ZSQL_IMPORT_TIMEOUT_S",
        "Longest run of one import, its upload included.",
        default=600,
        unit="s",
        minimum=1,
        maximum=86_400,
    )
    export_timeout_s: int = integer(
        "ZSQL_EXPORT_TIMEOUT_S",
        "Longest run of one streamed result, until its client has read it.",
        default=600,
        unit="s",
        minimum=1,
        maximum=86_400,
    )
    history_days: int = integer(
        "ZSQL_HISTORY_DAYS",
        "How long the history of SQL requests is kept; 0 keeps none.",
        default=7,
        unit="days",
        minimum=0,
        maximum=3_650,
    )
    running: int = integer(
        "ZSQL_RUNNING",
        "SQL requests that run concurrently per process; a cluster that runs none may run one "
        "more, which takes the place of one that waits. Together the processes run ZWEB_WORKERS "
        "times as many on each machine.",
        default=24,
        minimum=1,
        maximum=10_000,
    )
    running_per_organization: int = integer(
        "ZSQL_RUNNING_PER_ORGANIZATION",
        "SQL requests of one organization that run concurrently per process, fewer while few "
        "slots are free, and one fewer of each of its environments; in all processes of a machine "
        "ZWEB_WORKERS times as many.",
        default=3,
        minimum=1,
        maximum=10_000,
    )
    queue: int = integer(
        "ZSQL_QUEUE",
        "SQL requests that wait for a slot per process.",
        default=16,
        minimum=0,
        maximum=10_000,
    )
    database_connections: int = integer(
        "ZSQL_DATABASE_CONNECTIONS",
        "CONNECTION LIMIT of a tenant's database, over all processes; each of its three roles has "
        "two thirds. Databases that exist get another one by `manage.py hardendatabases --all`.",
        default=30,
        minimum=1,
        maximum=10_000,
    )
    transactions_per_organization: int = integer(
        "ZSQL_TRANSACTIONS_PER_ORGANIZATION",
        "Open interactive transactions of one organization.",
        default=4,
        minimum=0,
        maximum=1000,
    )
    transaction_idle_s: int = integer(
        "ZSQL_TRANSACTION_IDLE_S",
        "An interactive transaction without a statement is rolled back after this time.",
        default=10,
        unit="s",
        minimum=1,
        maximum=600,
    )
    transaction_life_s: int = integer(
        "ZSQL_TRANSACTION_LIFE_S",
        "An interactive transaction is rolled back at this age.",
        default=60,
        unit="s",
        minimum=1,
        maximum=3600,
    )
    copy_timeout_s: int = integer(
        "ZSQL_COPY_TIMEOUT_SECS",
        "Longest copy of one database, in a move, a clone or a restore.",
        default=3_600,
        unit="s",
        minimum=10,
        maximum=604_800,
    )
    disk_limit_bytes: int = integer(
        "ZSQL_DISK_LIMIT_BYTES",
        "Disk of one environment's database; `manage.py setquota` gives an organization "
        "its own limit.",
        default=10 * 1024 * MIB,
        unit="bytes",
        minimum=64 * MIB,
        maximum=2**50,
    )

    @property
    def running_per_environment(self) -> int:
        """Requests of one environment that a process runs: one fewer than its organization's."""
        return max(1, self.running_per_organization - 1)

    @property
    def transactions(self) -> int:
        """Open interactive transactions of a process."""
        return max(1, self.running // 3)

    @property
    def connections(self) -> int:
        """Connections of a process to tenants' clusters; a cut result takes a second one."""
        return 2 * self.running + self.transactions + 4

    @property
    def request_bytes(self) -> int:
        """Memory that one request may hold over all its parts."""
        return max(MIN_REQUEST_BYTES, RESULT_COPIES * self.max_bytes)

    @property
    def role_connections(self) -> int:
        """CONNECTION LIMIT of each of a tenant's three roles, over all processes."""
        return max(1, self.database_connections * 2 // 3)

    @property
    def row_bytes(self) -> int:
        """Longest undivided part of a result: libpq holds it twice, its values are copied once."""
        return self.request_bytes // 4


TABLES: Final = (SqlSettings,)
