"""``manage.py unlockuser``: enable a user again, and reset the counts of wrong attempts."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.management import user_arguments
from audit import trail
from common.commands import CommandResult, OpsCommand
from environments.management import arguments
from organizations import staff_access
from recovery import staff_actions
from recovery.audit_tags import RecoveryTag


class Command(OpsCommand):
    """Enable an account."""

    help = (
        "Enable an account, and reset its counts of wrong passwords and codes. Password and second "
        "factors stay the same, revoked API keys stay revoked. An enabled account gets a mail."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the user and the reason."""
        parser.add_argument("email", help="Address the user signs in with.")
        parser.add_argument("--reason", required=True, type=arguments.reason, help="For the audit.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Enable the account and reset its throttles."""
        user = user_arguments.user(options["email"])
        with transaction.atomic():
            is_enabled = staff_access.set_active(
                user, is_active=True, by=arguments.NAME, now=timezone.now()
            )
            had_passwords, factors = staff_actions.forget_failures(user)
            forgotten = {"passwords": had_passwords, "factors": factors}
            if is_enabled or had_passwords or factors:
                trail.add(
                    None,
                    RecoveryTag.CLI_USER_UNLOCK,
                    organization_id=user.organization_id,
                    actor=arguments.NAME,
                    data={
                        "member": str(user.pk),
                        "email": user.email,
                        "reason": options["reason"],
                        "enabled": is_enabled,
                        **forgotten,
                    },
                )
        facts = {
            "user_id": str(user.pk),
            "email": user.email,
            "org_id": user.organization_id,
            "locked": False,
            "changed": bool(is_enabled or had_passwords or factors),
            "enabled": is_enabled,
            "forgotten": forgotten,
        }
        return CommandResult(facts, f"{user.email} {_said(facts)}.")


def _said(facts: dict[str, Any]) -> str:
    if facts["enabled"]:
        return "is enabled, and may try again immediately"
    return "may try again immediately" if facts["changed"] else "was not locked"
