"""Background tasks of tenants' databases: stock, copies, passwords, removal, disk."""

from contextlib import suppress

from django.utils import timezone
from procrastinate.contrib.django import app

from audit import trail
from common.commands import CommandRefused
from common.jobs import defer_once, long_job_lock
from common.scoping import unscoped
from sqlgateway.audit_tags import SqlTag
from sqlgateway.databases import password_rotation, quotas, retirement, stock
from sqlgateway.databases.copies import (
    clones,
    moves,
    reason_for_tenant,
    switching,
    temporary_roles,
)
from sqlgateway.errors import DatabaseNotReady, EngineUnavailable
from sqlgateway.models import Cluster, Database


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="sqlgateway_keep_stock")
@unscoped("upkeep for every organization")
def keep_stock(timestamp: int) -> None:
    """Refill the stock regularly: after installation, a crash or an upgrade."""
    stock.refill()


@app.task(queueing_lock="sqlgateway_refill_stock")
@unscoped("the stock has no organization")
def refill_stock() -> None:
    """Replace claimed databases; ``keep_stock`` tries again after a failure."""
    stock.refill()


@app.task
@unscoped("a job knows its row alone")
def clone_database(database_pk: int) -> None:
    """Fill the database of a cloned environment; ``recover_copies`` queues further attempts.

    A job that waits for its own next attempt would block all others with its lock meanwhile.
    """
    with suppress(DatabaseNotReady, EngineUnavailable):
        clones.run(database_pk)


def queue_clone(database_pk: int, organization_id: int) -> None:
    """Queue ``clone_database`` unless it is queued already."""
    job = clone_database.configure(
        lock=long_job_lock(organization_id),
        queueing_lock=f"sqlgateway_clone:{database_pk}",
        # Other organizations' jobs go before an organization's second clone or attempt.
        priority=-clones.place_of(database_pk, organization_id),
    )
    defer_once(job, database_pk=database_pk)


@app.task
@unscoped("a job knows its row alone")
def move_database(database_pk: int, cluster_pk: int) -> None:
    """Move a database to another cluster. If that fails, it stays, and the refusal is audited."""
    rows = Database.objects.select_related("cluster", "environment").filter(pk=database_pk)
    database, cluster = rows.first(), Cluster.objects.filter(pk=cluster_pk).first()
    if database is None or cluster is None:
        return
    try:
        moves.move(database, cluster)
    except (CommandRefused, EngineUnavailable) as exc:
        is_copy = isinstance(exc, CommandRefused) and exc.code == "copy_failed"
        reason = reason_for_tenant(exc) if is_copy else str(exc)
        _audit_refusal(SqlTag.DATABASE_MOVE, database, reason, cluster=cluster.name)


def queue_move(database: Database, cluster: Cluster) -> bool:
    """Queue ``move_database``; False if a move of the database is queued already."""
    job = move_database.configure(
        lock=long_job_lock(database.organization_id or 0),
        queueing_lock=f"sqlgateway_move:{database.pk}",
    )
    return defer_once(job, database_pk=database.pk, cluster_pk=cluster.pk)


@app.task
@unscoped("a job knows its row alone")
def rotate_passwords(database_pk: int) -> None:
    """Replace the passwords of a database. If that fails, the refusal is audited."""
    rows = Database.objects.select_related("cluster", "environment").filter(pk=database_pk)
    database = rows.first()
    if database is None:
        return
    try:
        password_rotation.rotate(database)
    except (CommandRefused, EngineUnavailable) as exc:
        _audit_refusal(SqlTag.DATABASE_ROTATE, database, str(exc))


def queue_rotation(database_pk: int) -> bool:
    """Queue ``rotate_passwords``; False if a rotation of the database is queued already."""
    job = rotate_passwords.configure(queueing_lock=f"sqlgateway_rotate:{database_pk}")
    return defer_once(job, database_pk=database_pk)


def _audit_refusal(tag: SqlTag, database: Database, reason: str, **facts: str) -> None:
    trail.add(
        None,
        tag,
        organization_id=database.organization_id,
        environment_id=database.environment.slug if database.environment else "",
        actor="platform",
        outcome="refused",
        data={"database": database.pk, **facts, "reason": reason[:300]},
    )


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="sqlgateway_end_old_sessions")
@unscoped("upkeep for every organization")
def end_old_sessions(timestamp: int) -> None:
    """End sessions that were opened with passwords that have been replaced."""
    password_rotation.end_old_sessions(now=timezone.now())


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="sqlgateway_recover_copies")
@unscoped("upkeep for every organization")
def recover_copies(timestamp: int) -> None:
    """Continue clones, and roll back moves and restores, whose process was killed."""
    for database_pk, organization_id in clones.unfinished():
        queue_clone(database_pk, organization_id)
    switching.recover()


@app.periodic(cron="7 * * * *")
@app.task(queueing_lock="sqlgateway_drop_retired")
@unscoped("upkeep for every organization")
def drop_retired(timestamp: int) -> None:
    """Drop databases that were moved or replaced, and what killed copies have left."""
    retirement.drop_due(now=timezone.now())
    temporary_roles.drop_expired()


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="sqlgateway_measure_disk")
@unscoped("upkeep for every organization")
def measure_disk(timestamp: int) -> None:
    """Measure all databases; stop the growth of those over their quota, permit it below."""
    quotas.measure_all(now=timezone.now())
