"""``manage.py pruneexpired``: run the hourly housekeeping now."""

from time import time
from typing import Any, Final

import accounts.tasks
import audit.tasks
import common.tasks
import environments.tasks
import oauth.tasks
import organizations.tasks
import outbox.tasks
import recovery.tasks
import sqlgateway.databases.tasks
import sqlgateway.tasks
import twofactor.tasks
from common.commands import CommandResult, OpsCommand

TASKS: Final = (
    accounts.tasks.forget_expired,
    audit.tasks.forget_expired,
    common.tasks.forget_expired,
    outbox.tasks.maintain_deliveries,
    oauth.tasks.delete_expired,
    twofactor.tasks.forget_expired,
    twofactor.tasks.forget_expired_passkey_requests,
    recovery.tasks.forget_expired,
    organizations.tasks.forget_expired,
    organizations.tasks.maintain_exports,
    organizations.tasks.delete_due,
    environments.tasks.drop_expired_environments,
    sqlgateway.databases.tasks.drop_retired,
    sqlgateway.tasks.forget_transactions,
)


class Command(OpsCommand):
    """Run every housekeeping task once."""

    help = (
        "Delete expired data, such as ended sessions and events older than ZAUDIT_RETENTION_DAYS. "
        "The task worker does the same by itself, at least every hour."
    )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Run the tasks one after the other."""
        for task in TASKS:
            task(timestamp=int(time()))
        names = [task.name.replace(".tasks.", ".") for task in TASKS]
        return CommandResult({"ran": names}, "\n".join(names))
