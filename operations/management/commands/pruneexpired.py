"""``manage.py pruneexpired``: run the hourly housekeeping now."""

from time import time
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from common.commands import CommandResult, OpsCommand


class Command(OpsCommand):
    """Run every housekeeping task once."""

    help = (
        "Delete expired data: ended sessions, used and expired codes, invitations and sign-ins, "
        "trusted devices, counters, messages that were sent or expired, events older than "
        "ZAUDIT_RETENTION_DAYS; and queue the deletion of the data of environments whose "
        "retention is over. The task worker does the same by itself, at least every hour."
    )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Run the tasks one after the other."""
        for path in settings.PRUNING_TASKS:
            import_string(path)(timestamp=int(time()))
        names = [path.replace(".tasks.", ".") for path in settings.PRUNING_TASKS]
        return CommandResult({"ran": names}, "\n".join(names))
