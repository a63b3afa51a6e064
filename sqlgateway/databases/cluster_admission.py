"""Add clusters, check them, and stop placing databases on them."""

from dataclasses import dataclass
from typing import Final

import psycopg
from django.conf import settings
from django.db import transaction

from common.commands import CommandRefused
from environments.models import Organization
from sqlgateway.clusters import servers
from sqlgateway.databases import tenant_databases
from sqlgateway.hardening.cluster import complaints, version_complaint
from sqlgateway.models import Cluster, Database, RetiredDatabase

KEEP: Final = 0


@dataclass(frozen=True, slots=True)
class NewCluster:
    """A cluster as an administrator describes it.

    url: with a superuser.
    organization_id: the only organization whose databases are placed on it; None for all; KEEP for
    what an existing cluster has.
    accepts_findings: use the server in spite of the findings of the check.
    """

    name: str
    url: str
    capacity: int
    accepts_findings: bool
    organization_id: int | None = KEEP


def find(name: str) -> Cluster:
    """Return a cluster by name. Raises CommandRefused."""
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise CommandRefused("cluster_not_found", f"There is no cluster named {name}.")
    return cluster


def add(new: NewCluster) -> tuple[Cluster, list[str]]:
    """Check a server, create its template and open it for databases; return it with the findings.

    An existing cluster of this name gets the new URL, capacity and organization, and is opened
    again. The cluster is opened last, so that no database is placed on a server that failed.
    Raises CommandRefused, EngineUnavailable.
    """
    if settings.SQL.cluster_url:
        # The configured cluster needs a row with its system identifier, to be compared with.
        servers.address_of(servers.default())
    cluster = Cluster.objects.filter(name=new.name).first() or Cluster(name=new.name)
    findings = _examine(cluster, new)
    cluster.url = new.url
    cluster.capacity = new.capacity
    if new.organization_id != KEEP:
        _check_organization(cluster, new.organization_id)
        cluster.reserved_for_id = new.organization_id
    with transaction.atomic():
        # address_of saves what it finds, so it needs a row; the row is not open yet.
        cluster.state = Cluster.State.CLOSED if cluster.pk is None else cluster.state
        cluster.flags = []
        cluster.save()
        address = servers.address_of(cluster)
        try:
            tenant_databases.ensure_template(address)
        except psycopg.Error as exc:
            # The administrator needs the server's message, which does not contain the URL.
            sentence = f"The server refuses the template: {servers.said(exc)}"
            raise CommandRefused("server_unfit", sentence) from None
        cluster.state = Cluster.State.OPEN
        cluster.save(update_fields=["state"])
    if cluster.reserved_for_id is not None:
        drop_stock(cluster)
    return cluster, findings


def stop_placing(cluster: Cluster) -> int:
    """Stop placing databases on a cluster and drop its stock; return how many databases remain.

    These include databases that are kept after a move. A cluster without databases is closed. Safe
    to repeat. Raises EngineUnavailable.
    """
    cluster.state = Cluster.State.DRAINING
    cluster.save(update_fields=["state"])
    drop_stock(cluster)
    remaining = Database.objects.filter(cluster=cluster).count()
    remaining += RetiredDatabase.objects.filter(cluster=cluster).count()
    if not remaining:
        cluster.state = Cluster.State.CLOSED
        cluster.save(update_fields=["state"])
    return remaining


def drop_stock(cluster: Cluster) -> None:
    """Drop the prepared databases of the stock. Raises EngineUnavailable."""
    while _drop_one_of_stock(cluster):
        pass


def _check_organization(cluster: Cluster, organization_id: int | None) -> None:
    """Raises CommandRefused: there is no such organization, or others have databases there."""
    if organization_id is None:
        return
    if not Organization.objects.filter(pk=organization_id).exists():
        sentence = f"There is no organization {organization_id}."
        raise CommandRefused("organization_not_found", sentence)
    others = Database.objects.filter(cluster=cluster, organization__isnull=False)
    if others.exclude(organization=organization_id).exists():
        sentence = f"Other organizations have databases on the cluster {cluster.name}; move them."
        raise CommandRefused("cluster_taken", sentence)


def _examine(cluster: Cluster, new: NewCluster) -> list[str]:
    """Return the findings about a server.

    Raises CommandRefused if they are not accepted, or if the server belongs to another cluster.
    """
    bare = servers.address_without_row(new.url)
    with servers.administer(bare) as connection:
        sentence = servers.unfit(bare, connection)
        if sentence:
            raise CommandRefused("server_unfit", sentence)
        identifier = servers.system_identifier(connection)
        findings = list(complaints(connection))
        too_old = version_complaint(connection.info.server_version)
    same = Cluster.objects.filter(system_identifier=identifier).exclude(pk=cluster.pk).first()
    if same is not None:
        raise CommandRefused("cluster_taken", f"This server is the cluster {same.name} already.")
    if cluster.system_identifier not in {"", identifier} and cluster.databases.exists():
        sentence = f"The cluster {cluster.name} is another server, and has databases there."
        raise CommandRefused("cluster_taken", sentence)
    is_forbidden = too_old is not None and settings.IS_PRODUCTION
    if is_forbidden or (findings and not new.accepts_findings):
        raise CommandRefused("server_unfit", " ".join(findings), findings=findings)
    return findings


def _drop_one_of_stock(cluster: Cluster) -> bool:
    with transaction.atomic():
        rows = Database.objects.filter(
            cluster=cluster,
            environment=None,
            state__in=[Database.State.STOCK, Database.State.PREPARING],
        )
        database = rows.select_for_update(skip_locked=True).first()
        if database is None:
            return False
        tenant_databases.drop(database)
        database.delete()
    return True
