"""``manage.py up``: the whole platform on one machine."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from platform_site.embedded import up


class Command(BaseCommand):
    """Start the databases, migrate, and run every process until Ctrl-C."""

    help = "Run the whole platform here: databases, web server, task worker. Ctrl-C stops it."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take none; settings come from the environment (docs/settings.md)."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped."""
        raise SystemExit(up.main([]))
