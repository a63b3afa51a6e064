"""``manage.py checkisolation``: run harmless attacks against the servers of tenants' databases."""

from argparse import ArgumentParser
from typing import Any

from common.commands import CommandRefused, CommandResult, OpsCommand
from sqlgateway.clusters import servers
from sqlgateway.databases import cluster_admission
from sqlgateway.errors import EngineUnavailable
from sqlgateway.isolation.check import Report, check
from sqlgateway.models import Cluster


class Command(OpsCommand):
    """Attack every cluster as a tenant would, in databases created for this."""

    help = (
        "Attack the servers of tenants' databases as a hostile tenant would, in two databases that "
        "are made for it and dropped again. Only attacks that load nothing and change nothing "
        "shared. Safe on servers in production, at any time; takes some ten seconds for each. An "
        "attack with an unexpected outcome, or a server that does not answer, is exit status 1."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add an argument for the name of a cluster."""
        parser.add_argument("cluster", nargs="?", help="Its name; all if it is missing.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Check the clusters; fail if an attack has an unexpected outcome."""
        servers.default()
        name = options["cluster"]
        chosen = [cluster_admission.find(name)] if name else list(Cluster.objects.order_by("id"))
        reports = [report for cluster in chosen if (report := _report(cluster)) is not None]
        facts = {"clusters": [report.as_json() for report in reports]}
        unchecked = sorted({cluster.name for cluster in chosen} - {one.cluster for one in reports})
        text = "\n".join(
            [*map(_text, reports), *(f"{name}: does not answer." for name in unchecked)]
        )
        if unchecked or any(report.findings for report in reports):
            raise CommandRefused("isolation_not_confirmed", text, **facts, unchecked=unchecked)
        return CommandResult(facts, text)


def _report(cluster: Cluster) -> Report | None:
    try:
        return check(cluster)
    except EngineUnavailable:
        return None


def _text(report: Report) -> str:
    lines = [
        f"{report.cluster}: {report.attacks} attacks, {len(report.findings)} unexpected outcomes."
    ]
    lines += [
        f"  {one['role']}: {one['statement']}: {one['outcome']}, not {one['expected']}. "
        f"{one['reason']}"
        for one in report.findings
    ]
    return "\n".join(lines)
