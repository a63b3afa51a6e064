"""``manage.py endsessions``: end the sessions of one account, one organization, or all."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts import account_lifecycle
from accounts.audit_tags import AccountTag
from accounts.management import user_arguments
from accounts.models import Session, User
from accounts.sessions import sessions
from audit import trail
from common.commands import CommandResult, OpsCommand
from environments.management import arguments


class Command(OpsCommand):
    """End sessions."""

    help = (
        "End sessions immediately, including access tokens and the admin. Trusted devices still "
        "skip the second factor, unless --devices deletes them as well."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments."""
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("email", nargs="?", help="Address of one account.")
        whose.add_argument(
            "--organization", type=int, metavar="ID", help="All members of an organization."
        )
        whose.add_argument("--everybody", action="store_true", help="All accounts.")
        parser.add_argument(
            "--devices",
            action="store_true",
            help="Also delete trusted devices, and sign-ins that wait for a second factor.",
        )
        parser.add_argument("--dry-run", action="store_true", help="Only count the sessions.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """End the sessions in one transaction per user, so that no user waits for all others."""
        if options["dry_run"]:
            return _counted(_meant(options))
        ended = users = 0
        for user in _meant(options).iterator():
            number = _end(user, has_devices=options["devices"])
            ended, users = ended + number, users + bool(number)
        text = f"{ended} sessions of {users} accounts ended."
        return CommandResult({"sessions": ended, "users": users}, text)


def _meant(options: dict[str, Any]) -> QuerySet[User]:
    everybody: QuerySet[User] = User.objects.order_by("pk")
    # An empty address comes from a script's unset variable; it must not select everyone.
    if options["email"] is not None:
        return everybody.filter(pk=user_arguments.user(options["email"]).pk)
    if options["organization"] is not None:
        return everybody.filter(organization=arguments.organization(options["organization"]))
    return everybody


def _counted(users: QuerySet[User]) -> CommandResult:
    # A dry run that ends sessions and rolls back would block all sign-ins in the meantime.
    live = Session.objects.filter(user__in=users, ended_at=None)
    number, of_users = live.count(), live.values("user").distinct().count()
    text = f"{number} sessions of {of_users} accounts would be ended."
    return CommandResult({"sessions": number, "users": of_users, "dry_run": True}, text)


def _end(user: User, *, has_devices: bool) -> int:
    with transaction.atomic():
        number = sessions.end_all_of_user(user.pk, reason="operator", now=timezone.now())
        if has_devices:
            account_lifecycle.run_hooks("trust_ended", user.pk)
        # Staff's sessions of the admin end as well; their number is not known.
        if number or has_devices or user.is_staff:
            trail.add(
                None,
                AccountTag.CLI_SESSION_DELETE,
                organization_id=user.organization_id,
                data={
                    "member": str(user.pk),
                    "email": user.email,
                    "ended": number,
                    "devices": has_devices,
                },
            )
    return number
