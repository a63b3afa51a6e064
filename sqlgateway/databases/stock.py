"""A stock of prepared databases, so that an environment's first query does not wait."""

from typing import Final

import psycopg
import structlog
from django.db import transaction
from django.db.models import QuerySet

from common.scoping import unscoped
from sqlgateway import hardening, names
from sqlgateway.clusters import servers
from sqlgateway.clusters.servers import emptiest, said
from sqlgateway.databases import tenant_databases
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster, Database

# Prepared databases kept for new environments.
SIZE: Final = 2
log = structlog.get_logger(__name__)


def new_row(cluster: Cluster) -> Database:
    """Return an unsaved row with new names and passwords."""
    database = Database(
        cluster=cluster,
        dbname=names.database_name(),
        admin_role=names.role_name(),
        operator_role=names.role_name(),
        reader_role=names.role_name(),
    )
    database.passwords = {
        "admin": names.password(),
        "operator": names.password(),
        "reader": names.password(),
    }
    return database


def refill(wanted: int | None = None) -> int:
    """Create databases until the stock has ``wanted`` (by default SIZE); return their number.

    Databases that a crash left unfinished are completed first. Concurrent calls work on different
    rows.
    Raises EngineUnavailable at the end if a cluster did not answer, or refused.
    """
    made = 0
    unreachable: set[int] = set()
    while _finish_one(unreachable):
        made += 1
    goal = SIZE if wanted is None else wanted
    while _missing(goal) > 0:
        target = emptiest(None, without=unreachable)
        new_row(target).save(force_insert=True)
        if _finish_one(unreachable):
            made += 1
        elif target.pk not in unreachable:
            break
    if unreachable:
        raise EngineUnavailable("A cluster does not answer.")
    return made


def size() -> int:
    """Return the number of databases that can be claimed."""
    return _ready().count()


def claim(organization_id: int, environment_pk: int) -> Database | None:
    """Assign a database of the stock to the environment; None if no cluster that answers has one.

    An organization with a cluster of its own gets none: stock is on the clusters of all.
    Does not wait for concurrent claims.
    Raises django.db.IntegrityError if the environment already has a database.
    """
    if servers.open_to(organization_id).filter(reserved_for=organization_id).exists():
        return None
    unreachable: set[int] = set()
    while True:
        with transaction.atomic():
            rows = _ready().exclude(cluster__in=unreachable)
            database = rows.select_for_update(skip_locked=True, of=("self",)).order_by("id").first()
            if database is None:
                return None
            # The environment stays where it is placed, also while the cluster is away.
            if servers.answers(database.cluster):
                database.hand_over(organization_id, environment_pk)
                return database
            unreachable.add(database.cluster_id)


@unscoped("the stock has no organization")
def _ready() -> QuerySet[Database]:
    return Database.objects.select_related("cluster").filter(
        state=Database.State.STOCK,
        hardening=hardening.VERSION,
        cluster__state=Cluster.State.OPEN,
        cluster__reserved_for=None,
    )


def _missing(goal: int) -> int:
    return goal - size()


@unscoped("the stock has no organization")
def _finish_one(unreachable: set[int]) -> bool:
    """Create the database of one prepared row; False if there is no such row.

    unreachable: keys of clusters that did not answer or refused, to which this adds others.
    """
    while True:
        with transaction.atomic():
            rows = Database.objects.select_related("cluster").filter(
                state=Database.State.PREPARING, environment=None, cluster__state=Cluster.State.OPEN
            )
            rows = rows.exclude(cluster__in=unreachable).select_for_update(
                skip_locked=True, of=("self",)
            )
            database = rows.order_by("id").first()
            if database is None:
                return False
            try:
                tenant_databases.create(database)
            except (EngineUnavailable, psycopg.Error) as exc:
                # A full disk of one server does not keep the others from being filled, either.
                log.warning("sql_stock_not_made", database=database.pk, said=said(exc))
                unreachable.add(database.cluster_id)
                continue
            database.state = Database.State.STOCK
            database.save(update_fields=["state", "hardening"])
            return True
