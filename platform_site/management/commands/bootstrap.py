"""``manage.py bootstrap``: what a development installation has before its first request."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from accounts import development
from environments import lifecycle
from environments.models import Organization


class Command(BaseCommand):
    """Make the development organization, once."""

    help = "Make the development organization (idempotent) and print its id and token."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take --migrate and --json."""
        parser.add_argument("--migrate", action="store_true", help="Migrate the database first.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Find or make the organization and print it."""
        if options["migrate"]:
            call_command("migrate", interactive=False, verbosity=0)
        organization = Organization.objects.filter(pk=settings.DEV_ORG_ID).first()
        if organization is None:
            organization = lifecycle.create_organization("Development")
        has_token = settings.DEV_SECRET and not development.is_refused()
        token = development.token_for(organization.pk) if has_token else ""
        if options["json"]:
            answer = {"org_id": organization.pk, "dev_token": token}
            self.stdout.write(json.dumps(answer))
            return
        self.stdout.write(f"Organization {organization.pk}: {organization.name}")
        if token:
            self.stdout.write(f"Development token: {token}")
