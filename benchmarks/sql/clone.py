"""A clone of an environment of some 100 MB, compared with a copy of its table by psql."""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

TABLE = (
    "CREATE TABLE items AS SELECT i AS id, md5(i::text) AS name, i / 3.0 AS third, "
    "repeat('x', 40) AS note FROM generate_series(1, 800000) AS i"
)
INDEX = "ALTER TABLE items ADD PRIMARY KEY (id)"


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the time of a clone, relative to a copy by psql in the same cluster.

    identity, seconds: not used.
    """
    from environments import environments  # noqa: PLC0415 - needs django.setup()
    from sqlgateway.databases.copies import clones  # noqa: PLC0415 - as above
    from sqlgateway.models import Database  # noqa: PLC0415 - as above
    from tests.sqlgateway import support  # noqa: PLC0415 - as above

    someone = support.caller(support.organization("Bench clones"))
    for query in (TABLE, INDEX):
        someone.sql(query)
    source, home = someone.database, someone.scope.organization_id
    times, ratios = [], []
    for number in range(rounds):
        by_psql = _copy_s(source.dbname)
        started = time.perf_counter()
        made = environments.create(home, f"copy-{number}", copy_from="live")

        clones.run(Database.objects.get(environment_id=made.pk).pk)
        times.append(time.perf_counter() - started)
        ratios.append(times[-1] / by_psql)

        state = Database.objects.get(environment_id=made.pk).state
        if state != Database.State.ACTIVE:
            raise RuntimeError(f"the clone is {state}")
    size = someone.value("SELECT pg_database_size(current_database())")
    print(
        f"a clone of {int(size) / 1e6:.0f} MB: {statistics.median(times):.1f} s, "
        f"{statistics.median(ratios):.2f} times psql's ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def _copy_s(dbname: str) -> float:
    """Return the seconds in which psql copies the table, with its key."""
    psql = shutil.which("psql")
    if psql is None:
        raise RuntimeError("psql is not installed")
    url = urlsplit(os.environ["ZSQL_CLUSTER_URL"])._replace(path=f"/{dbname}").geturl()
    started = time.perf_counter()
    out = subprocess.Popen([psql, url, "-qc", "COPY items TO STDOUT"], stdout=subprocess.PIPE)
    table = "CREATE TABLE copied (LIKE items)"
    into = [psql, url, "-qc", table, "-c", "COPY copied FROM STDIN"]
    subprocess.run(
        [*into, "-c", "ALTER TABLE copied ADD PRIMARY KEY (id)"], stdin=out.stdout, check=True
    )
    out.wait()
    took = time.perf_counter() - started
    subprocess.run([psql, url, "-qc", "DROP TABLE copied"], check=True)
    return took
