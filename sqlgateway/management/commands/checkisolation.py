"""``manage.py checkisolation``: run harmless attacks against the servers of tenants' databases."""

from argparse import ArgumentParser
from typing import Any

import psycopg

from common.commands import CommandRefused, CommandResult, OpsCommand
from sqlgateway.clusters import servers
from sqlgateway.databases import cluster_admission
from sqlgateway.errors import EngineUnavailable
from sqlgateway.isolation.check import Report, check
from sqlgateway.models import Cluster


class Command(OpsCommand):
    """Attack every cluster as a tenant would, in databases created for this."""

    help = (
        "Attack the servers of tenants' databases as a hostile tenant would, in databases that are "
        "made for it and dropped again. Safe on servers in production, at any time. Exit status 1: "
        "an attack had an unexpected outcome, or a server did not answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add an argument for the name of a cluster."""
        parser.add_argument("cluster", nargs="?", help="Its name; all if it is missing.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Check the clusters; fail if an attack has an unexpected outcome."""
        servers.default()
        name = options["cluster"]
        chosen = [cluster_admission.find(name)] if name else list(Cluster.objects.order_by("id"))
        reports: list[Report] = []
        unchecked: dict[str, str] = {}
        for cluster in chosen:
            try:
                reports.append(check(cluster))
            except (EngineUnavailable, psycopg.Error) as exc:
                unchecked[cluster.name] = servers.said(exc)
        facts = {"clusters": [report.as_json() for report in reports]}
        lines = [f"{name}: not checked: {reason}" for name, reason in sorted(unchecked.items())]
        text = "\n".join([*map(_text, reports), *lines])
        if unchecked or any(report.findings for report in reports):
            names = sorted(unchecked)
            raise CommandRefused("isolation_not_confirmed", text, **facts, unchecked=names)
        return CommandResult(facts, text)


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
