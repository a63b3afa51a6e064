"""``manage.py procrastinate``: the task queue's own commands, with our log and signals."""

import os
import signal
from typing import Any

import structlog
from procrastinate import cli
from procrastinate.contrib.django.management.commands import procrastinate

from operations import releases

log = structlog.get_logger(__name__)


class Command(procrastinate.Command):
    """The same options as procrastinate's."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run a command; a worker also ends in order at SIGHUP."""
        if options.get("command") == "worker":
            vars(cli)["print_stderr"] = _log
            # nohup(1) ignores it.
            if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
                signal.signal(signal.SIGHUP, _end)
            releases.check_start()
        super().handle(*args, **options)


def _log(message: str) -> None:
    log.info("task_worker", message=message)


def _end(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
