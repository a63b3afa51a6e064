"""Choose the cluster of a new database."""

from collections.abc import Collection
from typing import Any

from django.db.models import Count, F, FloatField, Q, QuerySet
from django.db.models.functions import Cast

from sqlgateway.clusters import servers
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster, Database


def with_counts() -> QuerySet[Any]:
    """Return all clusters, annotated with numbers of databases.

    placed: all databases, including those in stock. in_stock: the databases in stock.
    Raises EngineUnavailable if no cluster is configured.
    """
    servers.default()
    return Cluster.objects.annotate(
        placed=Count("databases", filter=~Q(databases__state=Database.State.DROPPED)),
        in_stock=Count("databases", filter=Q(databases__state=Database.State.STOCK)),
    )


def has_room(cluster: Cluster) -> bool:
    """True if another database may be placed on a cluster."""
    return with_counts().filter(pk=cluster.pk, placed__lt=F("capacity")).exists()


def emptiest(*, major: int = 0, without: Collection[int] = ()) -> Cluster:
    """Return the open cluster with the smallest share of its capacity in use.

    major: the oldest acceptable version of PostgreSQL. without: keys of clusters to exclude.
    Each concurrent caller may exceed the capacity by one: it is a plan, not a limit of the server.
    Raises EngineUnavailable if every open cluster is full.
    """
    with_room = (
        with_counts()
        .filter(
            state=Cluster.State.OPEN,
            placed__lt=F("capacity"),
        )
        .exclude(pk__in=without)
    )
    if major:
        with_room = with_room.filter(server_version__gte=major * 10_000)
    share = Cast("placed", FloatField()) / F("capacity")
    cluster: Cluster | None = with_room.order_by(share, "id").first()
    if cluster is None:
        raise EngineUnavailable("No cluster has room for another database.")
    return cluster
