"""What a platform of some size needs: processes, cores, GiB, connections, money. Arithmetic alone.

``python -m benchmarks.sizes`` prints three sizes, and with numbers that of the numbers. UNITS were
measured, on two shared cores; everything else is an assumption, and an option.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

GIB: Final = 2**30
MONTH_HOURS: Final = 730
DAY_S: Final = 86_400
# Lines of usage: a year of billing's, and what the brains keep.
YEAR_DAYS: Final = 365
LINES_KEPT_DAYS: Final = 400
REPAIR_PAUSE_S: Final = 600


class Unit(NamedTuple):
    """What one of something takes. source: the benchmark that measured it."""

    value: float
    what: str
    source: str


ROWS: Final = "python -m benchmarks unit_costs"
COUNT: Final = "python -m benchmarks object_count"
UNITS: Final[Mapping[str, Unit]] = {
    # Milliseconds of a processor.
    "api": Unit(1.55, "a request of the API: web process", ROWS),
    "api_control": Unit(0.19, "the same: control database", ROWS),
    "sql": Unit(2.1, "a statement: web process", ROWS),
    "sql_control": Unit(0.29, "the same: control database", ROWS),
    "sql_tenants": Unit(0.28, "the same: tenants' cluster", ROWS),
    "read": Unit(0.18, "a signed read of 64 KiB: brain and worker", "benchmarks cache_gateway"),
    "cold": Unit(3.6, "a read that is not in a brain's memory: brain", COUNT),
    "cold_database": Unit(2.8, "the same: database", COUNT),
    "write": Unit(3.1, "a PUT of 64 KiB: brain", "python -m benchmarks cache_writes"),
    "write_database": Unit(6.0, "the same: database", COUNT),
    "listener": Unit(0.03, "a notification, for each connection that listens", ROWS),
    "acknowledgement": Unit(0.1, "an acknowledgement of another brain's write", ROWS),
    "storage": Unit(0.0029, "an object in the hourly sum of storage", COUNT),
    "repair": Unit(0.033, "a blob in a walk of repair: database", COUNT),
    "line": Unit(0.024, "a usage line that is settled", "python -m benchmarks billing"),
    # Bytes, with indexes.
    "organization": Unit(1573, "an organization with a user and a session", ROWS),
    "environment": Unit(1384, "an environment with its placement", ROWS),
    "event": Unit(219, "an audit event", ROWS),
    "billing_line": Unit(524, "billing: a usage line with its charge", ROWS),
    "brain_line": Unit(214, "brain: a usage line", ROWS),
    "object": Unit(1859, "an object: its rows, with one copy on a node", ROWS),
    "database": Unit(7.3 * 2**20, "an empty environment's database", ROWS),
    # MiB.
    "web_mib": Unit(143, "a busy web process", "python -m benchmarks soak"),
    "task_mib": Unit(111, "a task worker", ROWS),
    "brain_mib": Unit(110, "a brain, without its directory", COUNT),
    "connection_mib": Unit(1.8, "an idle connection of PostgreSQL", ROWS),
}
ASSUMED: Final[Mapping[str, tuple[float, str]]] = {
    "api": (0.04, "share of the requests that are of the API"),
    "sql": (0.05, "share that are short SQL statements"),
    "writes": (0.01, "share that write or delete an object; the rest reads objects"),
    "cold": (0.05, "share of the reads of what no brain has in memory"),
    "object-kib": (100, "size of an object"),
    "read-kib": (20, "bytes of a read's answer"),
    "buckets": (1, "buckets of an environment"),
    "data-mib": (50, "data of an environment's database"),
    "events": (1000, "audit events of an environment in a year"),
    "busy": (0.6, "share of a processor that is used"),
    "hot": (0.1, "share of a database that is in its server's memory"),
    "index-mib": (1024, "memory of a brain's directory (ZBRAIN_INDEX_MIB)"),
    "servers": (2, "PostgreSQL servers of a cluster, the standbys included"),
    "databases": (1000, "environments of a tenants' cluster"),
    "pool": (8, "connections of a web process to the control database (ZDB_POOL_SIZE)"),
    "core-hour": (0.04, "price of a core"),
    "memory-gib-month": (3, "price of a GiB of memory"),
    "disk-gib-month": (0.1, "price of a GiB of disk"),
    "store-gib-month": (0.02, "price of a GiB of the object store"),
    "traffic-gib": (0.01, "price of a GiB that is sent"),
}
COUNTS: Final = ("organizations", "environments", "objects", "requests-per-second")
SIZES: Final = (
    (20, 200, 100_000, 50),
    (1_000, 10_000, 10_000_000, 2_000),
    (10_000, 100_000, 1_000_000_000, 100_000),
)


def parser() -> argparse.ArgumentParser:
    """Return the options: the numbers of a size, then what is assumed."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    for name in COUNTS:
        made.add_argument(f"--{name}", type=int, metavar="N")
    for name, (value, what) in ASSUMED.items():
        made.add_argument(f"--{name}", type=float, default=value, help=f"{what} (%(default)g)")
    made.add_argument("--units", action="store_true", help="also print what was measured, and how")
    return made


def sized(counts: Sequence[int], given: argparse.Namespace) -> dict[str, float]:
    """Return the rows of the table for one size."""
    organizations, environments, objects, rate = counts
    unit = {name: each.value for name, each in UNITS.items()}
    api, sql, writes = rate * given.api, rate * given.sql, rate * given.writes
    reads = rate - api - sql - writes
    cold = reads * given.cold
    # A line for each bucket and hour.
    lines = environments * given.buckets * 24

    web = _processes(api * unit["api"] + sql * unit["sql"], given, at_least=2)
    brain_ms = reads * unit["read"] + cold * unit["cold"] + writes * unit["write"]
    brains = _processes(brain_ms, given, at_least=2)
    workers = _processes(lines * unit["line"] / DAY_S, given, at_least=1)
    database_ms = api * unit["api_control"] + sql * (unit["sql_control"] + unit["sql_tenants"])
    database_ms += cold * unit["cold_database"] + writes * unit["write_database"]
    # Each of the other brains acknowledges a write, by a notification.
    acknowledged = writes * (brains - 1)
    database_ms += (writes * brains + acknowledged) * unit["listener"]
    database_ms += acknowledged * unit["acknowledgement"]
    walk_s = REPAIR_PAUSE_S + objects * 1e-4
    database_ms += objects * (unit["storage"] / 3600 + unit["repair"] / walk_s)
    database = _processes(database_ms, given, at_least=1) * given.servers

    billed = lines * YEAR_DAYS * unit["billing_line"]
    control = organizations * unit["organization"] + environments * unit["environment"] + billed
    control += environments * given.events * unit["event"]
    metered = lines * LINES_KEPT_DAYS * unit["brain_line"]
    brain = objects * unit["object"] + metered
    tenants = environments * (unit["database"] + given.data_mib * 2**20)
    disk = (control + brain + tenants) * given.servers / GIB
    to_control, to_brains = web * given.pool + workers * 5, brains * 9
    clusters = math.ceil(environments / given.databases)
    memory = (to_control + to_brains + clusters * 100) * unit["connection_mib"]
    memory += web * unit["web_mib"] + workers * unit["task_mib"]
    memory = (memory + brains * (unit["brain_mib"] + given.index_mib)) / 1024 + disk * given.hot
    store = objects * given.object_kib / 2**20
    sent = reads * given.read_kib * MONTH_HOURS * 3600 / 2**20
    cores = web + brains + workers + database
    money = {
        "cores": cores * given.core_hour * MONTH_HOURS,
        "memory": memory * given.memory_gib_month,
        "disk": disk * given.disk_gib_month,
        "object store": store * given.store_gib_month,
        "traffic": sent * given.traffic_gib,
    }
    return {
        **dict(zip(COUNTS, counts, strict=True)),
        "web processes": web,
        "brains": brains,
        "task workers": workers,
        "cores of PostgreSQL": database,
        "cores": cores,
        "memory, GiB": memory,
        "control database, GiB": control / GIB,
        "of it usage lines of a year": billed / GIB,
        "brains' database, GiB": brain / GIB,
        "of it usage lines": metered / GIB,
        "tenants' clusters": clusters,
        "their databases, GiB": tenants / GIB,
        "connections, control database": to_control,
        "connections, brains' database": to_brains,
        "writes of objects a second": writes,
        "acknowledgements a second": acknowledged,
        "object store, GiB": store,
        **{f"money: {name}": spent for name, spent in money.items()},
        "money a month": sum(money.values()),
    }


def _processes(busy_ms: float, given: argparse.Namespace, *, at_least: int) -> int:
    """Return the processes, of one core each, for some processor time in a second."""
    busy: float = given.busy
    return max(at_least, math.ceil(busy_ms / 1000 / busy))


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    given = parser().parse_args(words)
    counts = [getattr(given, name.replace("-", "_")) for name in COUNTS]
    sizes = [tuple(count or 0 for count in counts)] if any(counts) else SIZES
    columns = [sized(size, given) for size in sizes]
    for name in columns[0]:
        print(f"{name:32}" + "".join(f"{column[name]:>14,.0f}" for column in columns))
    if given.units:
        for unit in UNITS.values():
            print(f"{unit.value:>12,.3f}  {unit.what} ({unit.source})")


if __name__ == "__main__":
    main()
