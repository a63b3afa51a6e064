"""``manage.py setquota``: set an organization's own limits."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any

from django.db import transaction

from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from environments.models import Organization
from sqlgateway.audit_tags import SqlTag
from sqlgateway.clusters.organization_limits import (
    DEFAULT,
    LIMITS,
    OwnLimit,
    Values,
    quota_of,
    set_own,
)


class Command(OpsCommand):
    """Set an organization's limits of disk, environments, statements and requests."""

    help = (
        "Set how much one organization may use, instead of "
        + ", ".join(limit.setting for limit in LIMITS[:-1])
        + f" and {LIMITS[-1].setting}; without options, show it. A change takes effect within a "
        "minute."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for the organization and each limit."""
        parser.add_argument("organization", type=int, help="The organization's id.")
        for limit in LIMITS:
            option = f"--{limit.name.replace('_', '-')}"
            parser.add_argument(option, type=_value(limit), help=f"{limit.help}, or {DEFAULT}.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Set the given limits, and return the limits in effect."""
        organization_id = options["organization"]
        if not Organization.objects.filter(pk=organization_id).exists():
            raise CommandRefused(
                "organization_not_found", f"There is no organization {organization_id}."
            )
        given = {
            limit.name: options[limit.name][0]
            for limit in LIMITS
            if options[limit.name] is not None
        }
        if given:
            _set(organization_id, given)
        quota = quota_of(organization_id)
        facts = {"org_id": organization_id}
        facts |= {limit.name: getattr(quota, limit.name) for limit in LIMITS}
        # Without an own limit an environment has another one than its organization.
        facts["statements"] = quota.own.get("statements")
        # Named as the options are, so that a line can be given back.
        lines = (
            f"--{limit.name.replace('_', '-'):14} {_shown(facts[limit.name])}" for limit in LIMITS
        )
        return CommandResult(facts, "\n".join([f"Organization {organization_id}:", *lines]))


def _shown(value: int | None) -> str:
    return DEFAULT if value is None else str(value)


def _set(organization_id: int, given: Values) -> None:
    with transaction.atomic():
        changed = set_own(organization_id, given)
        if changed:
            trail.add(
                None,
                SqlTag.CLI_QUOTA_SET,
                organization_id=organization_id,
                actor="command",
                data={"changed": changed},
            )


def _value(limit: OwnLimit) -> Callable[[str], tuple[int | None]]:
    """Return a parser of an option's value.

    It returns a tuple, because None stands for an option that was not given.
    """

    def read(text: str) -> tuple[int | None]:
        try:
            return (limit.read(text),)
        except ValueError as exc:
            raise ArgumentTypeError(str(exc)) from None

    return read
