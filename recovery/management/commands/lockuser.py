"""``manage.py lockuser``: disable a user until ``unlockuser``."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.management import user_arguments
from accounts.sessions import sessions
from audit import trail
from common.commands import CommandResult, OpsCommand
from environments.management import arguments
from organizations import staff_access
from recovery.audit_tags import RecoveryTag


class Command(OpsCommand):
    """Disable an account."""

    help = (
        "Disable an account immediately: its sessions, trusted devices, pending sign-ins, open "
        "invitations and API keys end. It gets a mail. `unlockuser` or an admin of the "
        "organization can enable it again."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the user and the reason."""
        parser.add_argument("email", help="Address the user signs in with.")
        parser.add_argument("--reason", required=True, type=arguments.reason, help="For the audit.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Disable the account and end its sessions."""
        user, now = user_arguments.user(options["email"]), timezone.now()
        with transaction.atomic():
            ended = sessions.end_all_of_user(user.pk, reason="disabled", now=now)
            is_changed = staff_access.set_active(user, is_active=False, by=arguments.NAME, now=now)
            if is_changed or ended:
                trail.add(
                    None,
                    RecoveryTag.CLI_USER_LOCK,
                    organization_id=user.organization_id,
                    actor=arguments.NAME,
                    data={
                        "member": str(user.pk),
                        "email": user.email,
                        "reason": options["reason"],
                        "sessions": ended,
                    },
                )
        facts = {
            "user_id": str(user.pk),
            "email": user.email,
            "org_id": user.organization_id,
            "locked": True,
            "changed": is_changed,
            "sessions": ended,
        }
        text = f"{user.email} is locked; {ended} sessions ended."
        return CommandResult(facts, text if is_changed else f"{user.email} was locked before.")
