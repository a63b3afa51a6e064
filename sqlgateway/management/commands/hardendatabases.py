"""``manage.py hardendatabases``: apply the current hardening to every database."""

from argparse import ArgumentParser
from typing import Any, Final

import psycopg
from django.db import transaction
from django.db.models import QuerySet

from common.commands import CommandResult, OpsCommand
from common.errors import PlatformError
from sqlgateway import hardening
from sqlgateway.clusters import servers
from sqlgateway.databases import tenant_databases
from sqlgateway.hardening.cluster import complaints
from sqlgateway.models import Cluster, Database

STATES: Final = (Database.State.STOCK, Database.State.ACTIVE)


class Command(OpsCommand):
    """Check the servers, and apply the current hardening to every database."""

    help = (
        "Check the servers of tenants' databases, and bring each database to the current "
        "hardening. Safe to repeat. Exit status 4: a server did not answer, or refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for which databases to harden, and for a dry run."""
        parser.add_argument("--all", action="store_true", help="Also those up to date.")
        parser.add_argument(
            "--dry-run", action="store_true", help="Check the servers and count, harden nothing."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Check and harden every cluster; continue after errors."""
        servers.default()
        is_dry = options["dry_run"]
        done = [
            self._process(cluster, again=options["all"], is_dry=is_dry)
            for cluster in Cluster.objects.order_by("id")
        ]
        text = "\n".join(
            f"{each['cluster']}: {each['databases']} {'to harden' if is_dry else 'hardened'}."
            for each in done
        )
        failed = [f"{each['cluster']}: {each['error']}" for each in done if each["error"]]
        return CommandResult({"clusters": done, "dry_run": is_dry}, text, "\n".join(failed))

    def _process(self, cluster: Cluster, *, again: bool, is_dry: bool) -> dict[str, Any]:
        found: dict[str, Any] = {
            "cluster": cluster.name,
            "complaints": [],
            "databases": 0,
            "error": "",
        }
        try:
            address = servers.address_of(cluster)
            with servers.administer(address) as connection:
                found["complaints"] = [*complaints(connection)]
            for complaint in found["complaints"]:
                self.stderr.write(f"{cluster}: {complaint}")
            rows = _to_harden(cluster, again=again)
            if is_dry:
                return found | {"databases": rows.count()}
            tenant_databases.ensure_template(address)
            for pk in rows.order_by("id").values_list("pk", flat=True):
                found["databases"] += _harden(address, pk)
        except (PlatformError, psycopg.Error) as exc:
            found["error"] = servers.said(exc)
        return found


def _harden(address: servers.ClusterAddress, pk: int) -> bool:
    """Harden a database; False if it is no longer on this cluster, or no longer in use.

    The row is locked, so that no rotation of passwords runs at the same time and is undone.
    """
    with transaction.atomic():
        rows = Database.objects.select_related("cluster").filter(
            pk=pk, cluster_id=address.cluster_id, state__in=STATES
        )
        database = rows.select_for_update(of=("self",)).first()
        if database is None:
            return False
        is_new = database.state == Database.State.STOCK
        tenant_databases.harden(address, database, catalog=True, is_new=is_new)
        database.hardening = hardening.VERSION
        database.save(update_fields=["hardening"])
    return True


def _to_harden(cluster: Cluster, *, again: bool) -> QuerySet[Database]:
    rows: QuerySet[Database] = Database.objects.filter(cluster=cluster, state__in=STATES)
    return rows if again else rows.exclude(hardening=hardening.VERSION)
