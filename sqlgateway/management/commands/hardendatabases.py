"""`manage.py hardendatabases`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from platform_site.lib.errors import PlatformError
from sqlgateway import hardening
from sqlgateway.hardening.cluster import complaints
from sqlgateway.models import Cluster, Database
from sqlgateway.provisioning import clusters, tenant_databases


class Command(BaseCommand):
    """Check the servers, and apply the current hardening to every database."""

    help = "Check the tenants' clusters and harden their databases."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the choice to repeat it for databases that are up to date."""
        parser.add_argument("--all", action="store_true", help="Also those up to date.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Visit every cluster; one that does not answer does not stop the others."""
        clusters.default()
        for cluster in Cluster.objects.order_by("id"):
            try:
                self._cluster(cluster, again=options["all"])
            except PlatformError as exc:
                self.stderr.write(f"{cluster}: {exc}")

    def _cluster(self, cluster: Cluster, *, again: bool) -> None:
        address = clusters.address_of(cluster)
        with clusters.administer(address) as connection:
            for complaint in complaints(connection):
                self.stderr.write(f"{cluster}: {complaint}")
        tenant_databases.ensure_template(address)
        rows = Database.unscoped.filter(  # unscoped: the platform's own work, all tenants
            cluster=cluster, state__in=[Database.State.STOCK, Database.State.ACTIVE]
        )
        if not again:
            rows = rows.exclude(hardening=hardening.VERSION)
        count = 0
        for database in rows.select_related("cluster").order_by("id"):
            is_new = database.state == Database.State.STOCK
            tenant_databases.harden(address, database, catalog=True, is_new=is_new)
            database.hardening = hardening.VERSION
            database.save(update_fields=["hardening"])
            count += 1
        self.stdout.write(f"{cluster}: {count} hardened.")
