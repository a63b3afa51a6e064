"""``manage.py cachestatus``: show the cache's status and metrics."""

from typing import Any

from common.commands import CommandResult, OpsCommand
from edgecache.api import cluster_status


class Command(OpsCommand):
    """Show status and metrics."""

    help = "Show whether the cache's brain answers, what the nodes hold, and the cache's metrics."

    def run(self, options: dict[str, Any]) -> CommandResult:
        facts = {"status": cluster_status.status(), "metrics": cluster_status.cluster_metrics()}
        values = facts["status"] | facts["metrics"]
        width = max(map(len, values))
        text = "\n".join(f"{name.ljust(width)}  {value}" for name, value in values.items())
        return CommandResult(facts, text)
