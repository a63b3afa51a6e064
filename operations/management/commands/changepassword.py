"""``manage.py changepassword``: set a user's password, in place of Django's command."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts import account_lifecycle, notices
from accounts.audit_tags import AccountTag
from accounts.management import user_arguments
from accounts.models import User
from accounts.sessions import sessions
from accounts.signin import mailbox_proofs
from audit import trail
from common.commands import CommandResult, OpsCommand
from organizations import staff_access


class Command(OpsCommand):
    """Set a password, and end what was opened with the one before."""

    help = (
        "Set the password of a user: the command asks for it, or reads it from standard input if "
        "that is not a terminal. The user's sessions and trusted devices end, and a mail tells the "
        "user; second factors stay."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the argument for the address."""
        parser.add_argument("email", help="Address the user signs in with.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Set the password in one transaction with its consequences."""
        found = user_arguments.user(options["email"])
        encoded = user_arguments.ask_password(found.email, found.organization.name)
        with transaction.atomic():
            user = User.locked(found.pk)
            user.password = encoded
            user.save(update_fields=["password"])
            mailbox_proofs.delete_change(user)
            staff_access.unlock_password(user)
            account_lifecycle.run_hooks("trust_ended", user.pk)
            ended = sessions.end_all_of_user(user.pk, reason="password_changed", now=timezone.now())
            notices.notify(user, "password_changed")
            trail.add(
                None,
                AccountTag.CLI_PASSWORD_UPDATE,
                organization_id=user.organization_id,
                data={"member": str(user.pk), "email": user.email, "ended": ended},
            )
        facts = {"user_id": str(user.pk), "email": user.email, "sessions": ended}
        return CommandResult(facts, f"{user.email} has the new password; {ended} sessions ended.")
