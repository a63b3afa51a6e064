"""``manage.py createstaff``: create a user who may use the admin."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction

from accounts.audit import audit
from accounts.audit_tags import AccountTag
from accounts.management import operators
from accounts.models import User
from accounts.signin import credentials, signup
from environments import environments
from platform_site.lib.commands import OpsCommand, Outcome


class Command(OpsCommand):
    """Create a member of the platform's staff, or promote an existing user."""

    help = (
        "Create a member of the platform's staff, who may use the admin. A new user gets an "
        "organization; the command asks for the password, or reads it from standard input if that "
        "is not a terminal. An existing user keeps password and organization."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the address and the rights."""
        parser.add_argument("email", help="Address the person signs in with.")
        parser.add_argument(
            "--view-only", action="store_true", help="Read-only access to the admin."
        )

    def run(self, options: dict[str, Any]) -> Outcome:
        """Create or promote the user."""
        user = credentials.find(options["email"])
        with operators.refuse_taken_address(options["email"]), transaction.atomic():
            if user is None:
                user = _create(options["email"])
            user.is_staff = True
            user.is_view_only = options["view_only"]
            user.save(update_fields=["is_staff", "is_view_only"])
            audit.add(
                None,
                AccountTag.CLI_STAFF_CREATE,
                organization_id=user.organization_id,
                actor_id=user.pk,
                actor=user.email,
                data={"view_only": user.is_view_only},
            )
        facts = {"user_id": str(user.pk), "email": user.email, "org_id": user.organization_id}
        text = "read the admin" if user.is_view_only else "use the admin"
        return Outcome(facts | {"view_only": user.is_view_only}, f"{user.email} may {text}.")


def _create(email: str) -> User:
    kept = operators.free_address(email)
    encoded = operators.ask_password(kept)
    return signup.add_user(
        environments.create_organization("Staff"), kept, encoded, roles=["admin"]
    )
