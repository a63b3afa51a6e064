"""``manage.py setroles``: set a member's roles."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.management import user_arguments
from audit import trail
from common.commands import CommandResult, OpsCommand
from common.permissions import ROLES
from environments.management import arguments
from organizations import created, members
from organizations.audit_tags import OrganizationTag
from organizations.members import MemberChanges


class Command(OpsCommand):
    """Set a member's roles."""

    help = (
        "Set the roles of a member, who gets a mail. Roles from an identity provider's groups are "
        "kept."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the member and the roles."""
        parser.add_argument("email", help="Address the member signs in with.")
        parser.add_argument(
            "roles", nargs="+", choices=ROLES, metavar="ROLE", help=" | ".join(ROLES)
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Set the roles."""
        who = user_arguments.user(options["email"])
        found = created.of_admin(who, now=timezone.now())
        with transaction.atomic():
            member, changed = members.change(
                who.organization_id,
                str(who.pk),
                MemberChanges(roles=options["roles"]),
                by=arguments.NAME,
                now=timezone.now(),
                said=created.summary(found),
            )
            if changed:
                data = {"member": str(member.pk), "email": member.email, **changed}
                trail.add(
                    None,
                    OrganizationTag.CLI_MEMBER_UPDATE,
                    organization_id=who.organization_id,
                    data=data,
                )
        facts = {
            "user_id": str(member.pk),
            "email": member.email,
            "org_id": member.organization_id,
            "roles": member.roles,
            "changed": bool(changed),
        }
        return CommandResult(facts, f"{member.email}: {', '.join(member.roles)}")
