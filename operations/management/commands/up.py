"""``manage.py up``: the whole platform on one machine."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Start the databases, migrate, and run every process until Ctrl-C."""

    help = "Run the whole platform here: databases, web server, task worker. Ctrl-C stops it."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace this process by the supervisor, which does not need Django's memory."""
        module = ["-m", "operations.embedded", "up"]
        os.execv(sys.executable, [sys.executable, *module])  # noqa: S606 - this very interpreter
