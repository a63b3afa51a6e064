"""``manage.py createstaff``: create a user who may use the admin, or take that right away."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction

from accounts.audit_tags import AccountTag
from accounts.management import user_arguments
from accounts.models import User
from accounts.reclaim import address_release
from accounts.signin import credentials, signup
from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from environments import environments


class Command(OpsCommand):
    """Create a member of the platform's staff, promote an existing user, or remove one."""

    help = (
        "Create a member of the platform's staff, who may use the admin. A new user gets an "
        "organization, and the command asks for the password (standard input, if that is no "
        "terminal). An existing user must have verified the address, and keeps everything else."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the address and the rights."""
        parser.add_argument("email", help="Address the person signs in with.")
        rights = parser.add_mutually_exclusive_group()
        rights.add_argument(
            "--view-only", action="store_true", help="Read-only access to the admin."
        )
        rights.add_argument(
            "--remove",
            action="store_true",
            help="Take the right to use the admin away; the account stays.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Create or promote the user, or end the user's rights in the admin."""
        user = credentials.find(options["email"])
        if options["remove"]:
            return _remove(user, options["email"])
        if user is not None and address_release.is_free_for(user, None):
            # Anybody can sign up with the address of a future member of staff.
            message = (
                f"{options['email']} has an account that never verified the address. The owner "
                "verifies it, or signs up by a mailed link, which takes it from that account."
            )
            raise CommandRefused("email_unverified", message)
        with user_arguments.taking_address("" if user is not None else options["email"]):
            if user is None:
                user = _create(options["email"])
            user.is_staff = True
            user.is_view_only = options["view_only"]
            _save(user, AccountTag.CLI_STAFF_CREATE)
        verb = "could" if options["dry_run"] else "may"
        text = "read the admin" if user.is_view_only else "use the admin"
        return CommandResult(_facts(user), f"{user.email} {verb} {text}.")


def _remove(user: User | None, email: str) -> CommandResult:
    """Take the rights away; the admin reads them at each request, so open sessions end, too."""
    if user is None or not user.is_staff:
        raise CommandRefused("not_staff", f"{email} is not a member of staff.")
    user.is_staff = user.is_view_only = False
    with transaction.atomic():
        _save(user, AccountTag.CLI_STAFF_DELETE)
    return CommandResult(_facts(user), f"{user.email} may no longer use the admin.")


def _save(user: User, tag: AccountTag) -> None:
    """Save the rights and record the change."""
    user.save(update_fields=["is_staff", "is_view_only"])
    trail.add(
        None,
        tag,
        organization_id=user.organization_id,
        actor_id=user.pk,
        actor=user.email,
        data={"view_only": user.is_view_only},
    )


def _facts(user: User) -> dict[str, Any]:
    return {
        "user_id": str(user.pk),
        "email": user.email,
        "org_id": user.organization_id,
        "view_only": user.is_view_only,
    }


def _create(email: str) -> User:
    kept = user_arguments.free_address(email)
    encoded = user_arguments.ask_password(kept)
    return signup.add_user(
        environments.create_organization("Staff"), kept, encoded, roles=["admin"]
    )
