"""``manage.py runbrain``: a coordination node of the edge cache."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from edgecache.brain.__main__ import DESCRIPTION


class Command(BaseCommand):
    """Serve the brain's three ports until SIGTERM."""

    help = DESCRIPTION
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        """Become the brain, which needs no applications: tens of megabytes that stay free."""
        module = ["-m", "edgecache.brain"]
        os.execv(sys.executable, [sys.executable, *module])  # noqa: S606 - this very interpreter
