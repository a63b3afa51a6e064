"""Checks of the control plane's database and task queue, and of the servers of tenants."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, connection

from common import control_database
from common.machine.reasons import reason
from common.pending_migrations import pending_migrations
from operations.backup import manifest
from operations.doctor.findings import Finding, Level
from sqlgateway.clusters import servers
from sqlgateway.errors import EngineUnavailable
from sqlgateway.hardening.cluster import complaints, version_complaint
from sqlgateway.models import Cluster

# One-time codes of apps are valid for 30 s.
MAX_SKEW_S: Final = 5.0
# Workers report every 10 s; a task that waits longer than a minute has no worker.
MAX_SILENCE_S: Final = 60
LATE_S: Final = 300
QUEUE: Final = """
SELECT
    (SELECT extract(epoch FROM now() - max(last_heartbeat)) FROM procrastinate_workers),
    (SELECT extract(epoch FROM now() - min(coalesce(job.scheduled_at, event.at)))
     FROM procrastinate_jobs AS job
     JOIN procrastinate_events AS event ON event.job_id = job.id AND event.type = 'deferred'
     WHERE job.status = 'todo' AND coalesce(job.scheduled_at, event.at) < now()),
    (SELECT count(DISTINCT job.id) FROM procrastinate_jobs AS job
     JOIN procrastinate_events AS event ON event.job_id = job.id AND event.type = 'failed'
     WHERE job.status = 'failed' AND event.at > now() - interval '1 day')
"""
CLUSTERS: Final = "clusters"
# Share of the capacity; add a cluster before the last one is full.
NEARLY_FULL: Final = 0.9


def unreachable() -> str:
    """Return why the control database cannot be used, or ''."""
    try:
        connection.ensure_connection()
    except DatabaseError as exc:
        return reason(exc)
    return ""


def check_server() -> Iterator[Finding]:
    """Check the server's version and clock."""
    wrong = control_database.complaint(connection.connection)
    if wrong:
        yield Finding("database", Level.FAILED, wrong, "Copy the data there (docs/backup.md).")
    before = datetime.now(UTC)
    # Not now(), which is the start of the transaction.
    theirs, version = _row("SELECT clock_timestamp(), current_setting('server_version_num')::int")
    after = datetime.now(UTC)
    complaint = version_complaint(version)
    if complaint:
        advice = "Install the latest minor release of PostgreSQL."
        yield Finding("database", Level.WARNING, complaint, advice)
    else:
        major, minor = divmod(version, 10_000)
        yield Finding("database", Level.OK, f"PostgreSQL {major}.{minor} answers.")
    # The duration of the query does not count as a difference of clocks.
    yield _clock(max(0.0, (before - theirs).total_seconds(), (theirs - after).total_seconds()))


def _clock(skew_s: float) -> Finding:
    if skew_s <= MAX_SKEW_S:
        return Finding("clock", Level.OK, f"{skew_s:.1f} s from the database's.")
    message = f"This machine's clock is {skew_s:.0f} s from the database's."
    advice = "Synchronize both machines by NTP: tokens and one-time codes depend on it."
    return Finding("clock", Level.FAILED, message, advice)


def check_migrations() -> Iterator[Finding]:
    """Check that all migrations are applied."""
    waiting = {alias: pending_migrations(alias) for alias in settings.DATABASES}
    for alias, count in waiting.items():
        if count:
            message = f"{count} migrations are not applied."
            advice = f"Run `manage.py {manifest.migrate_command(alias)}`."
            yield Finding("migrations", Level.FAILED, message, advice)
    if not any(waiting.values()):
        yield Finding("migrations", Level.OK, "All are applied.")


def check_queue() -> Iterator[Finding]:
    """Check that a worker runs tasks, and that no task failed in the last day."""
    silence_s, late_s, failed = _row(QUEUE)
    start = "Start `manage.py procrastinate worker`."
    if silence_s is None or silence_s > MAX_SILENCE_S:
        since = "." if silence_s is None else f" for {silence_s:.0f} s."
        yield Finding("queue", Level.FAILED, f"No task worker has reported{since}", start)
    elif late_s is not None and late_s > LATE_S:
        message = f"A task waits for {late_s:.0f} s."
        yield Finding("queue", Level.WARNING, message, "Start more task workers, or see their log.")
    else:
        yield Finding("queue", Level.OK, "A task worker runs, and no task waits for long.")
    if failed:
        advice = "See them in the admin under Procrastinate jobs, and retry them there."
        yield Finding("queue", Level.WARNING, f"{failed} tasks failed in the last day.", advice)


def check_clusters() -> Iterator[Finding]:
    """Check each server."""
    try:
        rows = list(servers.with_counts().exclude(state=Cluster.State.CLOSED).order_by("id"))
    except EngineUnavailable:
        advice = "Set ZSQL_CLUSTER_URL, or run `manage.py addcluster`."
        yield Finding(CLUSTERS, Level.FAILED, "No server for tenants' databases is set.", advice)
        return
    for row in rows:
        yield from _check_cluster(row)
    is_open = [row for row in rows if row.state == Cluster.State.OPEN]
    if all(row.placed >= NEARLY_FULL * row.capacity for row in is_open):
        message = "Every open server has used nine tenths of its capacity or more."
        yield Finding(CLUSTERS, Level.WARNING, message, "Run `manage.py addcluster`.")


def _check_cluster(cluster: Any) -> Iterator[Finding]:
    try:
        with servers.administer(servers.address_of(cluster)) as server:
            if sentence := servers.unfit(servers.address_of(cluster), server):
                raise servers.unusable(sentence, cluster)
            found = list(complaints(server))
    except EngineUnavailable as exc:
        said = f" ({exc.for_operators})" if exc.for_operators else ""
        message = f"{cluster.name} does not answer{said}: the requests of its tenants get 503."
        if exc.is_unfit:
            message = f"{cluster.name}: {exc.for_operators} The requests of its tenants get 503."
        advice = "Start it, or check its address, role and password (ZSQL_CLUSTER_URL)."
        yield Finding(CLUSTERS, Level.FAILED, message, advice)
        return
    for sentence in found:
        advice = "See docs/production.md, and confirm with `manage.py checkisolation`."
        yield Finding(CLUSTERS, Level.WARNING, f"{cluster.name}: {sentence}", advice)
    if not found:
        major, minor = divmod(cluster.server_version, 10_000)
        message = (
            f"{cluster.name}: PostgreSQL {major}.{minor} answers and is hardened, "
            f"{cluster.placed} of {cluster.capacity} databases."
        )
        yield Finding(CLUSTERS, Level.OK, message)


def _row(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()
