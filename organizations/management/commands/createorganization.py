"""``manage.py createorganization``: create an organization, and optionally its first admin."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from accounts.management import user_arguments
from accounts.signin import signup
from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from common.names import RULE, is_one_line
from environments import environments
from environments.models import BUILT_IN
from organizations import invitations
from organizations.audit_tags import OrganizationTag
from organizations.invitations import Inviter

MAX_NAME_CHARS = 200


class Command(OpsCommand):
    """Create an organization with its environments."""

    help = (
        "Create an organization with the environments live and sandbox. Without --admin, run "
        "createuser next: it has no user yet."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the name and the admin."""
        parser.add_argument("name", help=f"Name, 1 to {MAX_NAME_CHARS} characters.")
        parser.add_argument(
            "--admin",
            metavar="EMAIL",
            help="Its first admin, who is mailed a link to set a password.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Create the organization, and invite the admin if there is one."""
        name = str(options["name"]).strip()
        if not 0 < len(name) <= MAX_NAME_CHARS or not is_one_line(name):
            message = f"A name has 1 to {MAX_NAME_CHARS} characters. {RULE}"
            raise CommandRefused("name_invalid", message)
        asked: str | None = options["admin"]
        email = "" if asked is None else user_arguments.free_address(asked)
        with user_arguments.taking_address(email):
            made = environments.create_organization(name)
            trail.add(
                None,
                OrganizationTag.CLI_ORGANIZATION_CREATE,
                organization_id=made.pk,
                data={"name": name},
            )
            if email:
                admin = signup.add_user(made, email, make_password(None), roles=["admin"])
                invitations.invite_member(admin, inviter=Inviter(), now=timezone.now())
        facts = {"org_id": made.pk, "name": name, "environments": [*BUILT_IN]}
        facts["admin"] = email or None
        if options["dry_run"]:
            # The number is another one when it is really created.
            text = f"{name} would be created."
            return CommandResult(
                facts, f"{text} A link would be mailed to {email}." if email else text
            )
        text = f"Organization {made.pk}: {name}"
        return CommandResult(
            facts, f"{text}\nIts admin's link was mailed to {email}." if email else text
        )
