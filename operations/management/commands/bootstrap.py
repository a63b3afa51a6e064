"""``manage.py bootstrap``: create what a development installation needs."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from accounts.tokens import development
from common.machine.folders import make_private
from common.scoping import within_organization
from console import static_files
from edgecache import local_nodes
from environments import environments
from environments.models import Environment, Organization


class Command(BaseCommand):
    """Create the development organization and the data of this machine's edge cache, once."""

    help = (
        "Create the development organization, its bucket and its access key, and register this "
        "machine's cache workers, unless they exist. Prints the organization's id and token."
    )
    # The other checks load all code, which would add half a second to each start.
    requires_system_checks = ["settings"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --migrate, --static and --json."""
        parser.add_argument("--migrate", action="store_true", help="Migrate the database first.")
        parser.add_argument(
            "--static", action="store_true", help="Collect the pages' files if they changed."
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Find or create the organization and print it."""
        if options["migrate"]:
            for alias in settings.DATABASES:
                call_command("migrate", interactive=False, verbosity=0, database=alias)
        if options["static"]:
            static_files.collect_if_changed()
        organization = Organization.objects.filter(pk=settings.ACCOUNTS.dev_org_id).first()
        if organization is None:
            organization = environments.create_organization("Development")
        has_token = settings.ACCOUNTS.dev_secret and not development.is_refused()
        token = development.token_for(organization.pk) if has_token else ""
        access = _cache(organization) if settings.HAS_CACHE else {}
        if options["json"]:
            answer = {
                "org_id": organization.pk,
                "dev_token": token,
                "cache": access,
            }
            self.stdout.write(json.dumps(answer))
            return
        self.stdout.write(f"Organization {organization.pk}: {organization.name}")
        if token:
            self.stdout.write(f"Development token: {token}")
        if access:
            self.stdout.write(f"Access key: {access['access_key_id']} of {access['bucket']}")


def _cache(organization: Organization) -> dict[str, str]:
    """Register this machine's workers; return the development key, {} in production."""
    # The tables only exist with the feature.
    from edgecache.brain import local_setup  # noqa: PLC0415 - see above
    from edgecache.brain.core.values import EnvironmentKey  # noqa: PLC0415 - see above

    for node in local_nodes.load_all(settings.DATA_DIR):
        local_setup.register(node)
    if development.is_refused():
        return {}
    with within_organization(organization.pk):
        environment = Environment.objects.get(slug="live")
    folder = local_nodes.nodes_dir(settings.DATA_DIR)
    make_private(folder)
    tenant = EnvironmentKey(organization.pk, environment.pk)
    return local_setup.development_access(tenant, folder / "access-key.json").as_json()
