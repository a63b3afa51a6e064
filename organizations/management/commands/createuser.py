"""``manage.py createuser``: create a member of an organization."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from accounts.management import user_arguments
from accounts.models import User
from accounts.reclaim import address_release
from accounts.signin import signup
from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from common.permissions import ROLES
from environments.management import arguments
from environments.models import Organization
from organizations import invitations, members
from organizations.audit_tags import OrganizationTag
from organizations.invitations import Inviter


class Command(OpsCommand):
    """Create a member of an organization."""

    help = (
        "Create a member of an organization. The command asks for the password (standard input, if "
        "that is no terminal). An account of another organization that has the address and never "
        "verified it loses the address."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the address, organization, roles and labels."""
        parser.add_argument("email", help="Address the person signs in with.")
        parser.add_argument(
            "--organization",
            type=int,
            required=True,
            metavar="ID",
            help="Organization of the member.",
        )
        parser.add_argument(
            "--role",
            action="append",
            choices=ROLES,
            dest="roles",
            required=True,
            help="A role; repeatable.",
        )
        parser.add_argument(
            "--label",
            action="append",
            default=[],
            dest="labels",
            metavar="LABEL",
            help="A label; repeatable.",
        )
        parser.add_argument(
            "--verified", action="store_true", help="The address is known to belong to the person."
        )
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--invite", action="store_true", help="Mail a link to set the password.")
        how.add_argument(
            "--no-password",
            action="store_true",
            help="Set and mail nothing: sign in by a provider or recovery.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Create the member, and invite it unless it has a password."""
        if options["invite"] and options["verified"]:
            message = "--invite proves the address itself; leave --verified out."
            raise CommandRefused("invite_verifies", message)
        for message in members.label_faults(options["labels"]):
            raise CommandRefused("label_invalid", message)
        home = arguments.organization(options["organization"])
        email = user_arguments.free_address(options["email"], home=home)
        has_password = not (options["invite"] or options["no_password"])
        encoded = user_arguments.ask_password(email, home.name) if has_password else None
        with user_arguments.taking_address(email):
            made = _make(home, email, encoded or make_password(None), options)
        facts = {
            "user_id": str(made.pk),
            "email": made.email,
            "org_id": home.pk,
            "roles": made.roles,
            "labels": made.labels,
            "invited": options["invite"],
        }
        is_dry = options["dry_run"]
        verb = "would be" if is_dry else "is"
        text = f"{made.email} {verb} a member of {home.name} ({', '.join(made.roles)})."
        mailed = "The link would be mailed." if is_dry else "The link was mailed."
        return CommandResult(facts, f"{text} {mailed}" if options["invite"] else text)


def _make(home: Organization, email: str, encoded: str, options: dict[str, Any]) -> User:
    roles: list[str] = [role for role in ROLES if role in options["roles"]]
    made = signup.add_user(home, email, encoded, roles=roles)
    made.labels = list(dict.fromkeys(options["labels"]))
    made.email_verified_at = timezone.now() if options["verified"] else None
    made.save(update_fields=["labels", "email_verified_at"])
    if not address_release.is_prepared(made):
        invitations.end_for_member(made.pk)
    if options["invite"]:
        invitations.invite_member(made, inviter=Inviter(), now=timezone.now())
    trail.add(
        None,
        OrganizationTag.CLI_MEMBER_CREATE,
        organization_id=home.pk,
        data={"member": str(made.pk), "email": email, "roles": roles},
    )
    return made
