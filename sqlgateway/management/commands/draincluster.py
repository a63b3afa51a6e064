"""``manage.py draincluster``: take a server out of use."""

from argparse import ArgumentParser
from typing import Any

from platform_site.lib.commands import OpsCommand, Outcome
from sqlgateway.provisioning import cluster_registry


class Command(OpsCommand):
    """Place no more databases on a cluster."""

    help = (
        "Place no more databases on a cluster and drop those in stock there. Environments stay "
        "where they are and go on working; a cluster without any is closed. Safe to repeat; "
        "addcluster opens it again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the name."""
        parser.add_argument("name", help="The cluster's name.")

    def run(self, options: dict[str, Any]) -> Outcome:
        """Drain it."""
        cluster = cluster_registry.find(options["name"])
        remaining = cluster_registry.stop_placing(cluster)
        facts = {"cluster": cluster.name, "state": cluster.state, "databases": remaining}
        return Outcome(facts, f"{cluster.name}: {cluster.state}, {remaining} databases remain.")
