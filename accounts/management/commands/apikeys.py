"""``manage.py apikeys``: show API keys without their text, and revoke them."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.api_keys import api_keys
from accounts.audit_tags import AccountTag
from accounts.management import user_arguments
from accounts.models import ApiKey
from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from environments.management import arguments


class Command(OpsCommand):
    """List API keys, or revoke them."""

    help = (
        "List API keys, newest first, without their text, or revoke those that match the filters. "
        "Without a filter --revoke requires --everybody."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the filters and the options."""
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument("--key", type=UUID, metavar="ID", help="One key, by its id.")
        whose.add_argument("--creator", metavar="EMAIL", help="The keys that one admin created.")
        whose.add_argument("--organization", type=int, metavar="ID", help="One organization's.")
        whose.add_argument("--everybody", action="store_true", help="All keys.")
        parser.add_argument("--revoke", action="store_true", help="Revoke these keys.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """List the keys, or revoke them."""
        rows = _meant(options)
        return _revoked(rows, options) if options["revoke"] else _shown(rows)


def _meant(options: dict[str, Any]) -> QuerySet[ApiKey]:
    rows: QuerySet[ApiKey] = ApiKey.objects.order_by("-id")
    if options["key"] is not None:
        rows = rows.filter(pk=options["key"])
        if not rows.exists():
            raise CommandRefused("api_key_not_found", f"There is no API key {options['key']}.")
        return rows
    # An empty address comes from a script's unset variable; it must not select everyone.
    if options["creator"] is not None:
        return rows.filter(creator=user_arguments.user(options["creator"]))
    if options["organization"] is not None:
        return rows.filter(organization=arguments.organization(options["organization"]))
    if options["revoke"] and not options["everybody"]:
        message = "Name --key, --creator or --organization, or say --everybody."
        raise CommandRefused("nothing_named", message)
    return rows


def _revoked(rows: QuerySet[ApiKey], options: dict[str, Any]) -> CommandResult:
    now, number = timezone.now(), 0
    organizations = rows.order_by().values_list("organization_id", flat=True).distinct()
    for organization_id in [*organizations]:
        with transaction.atomic():
            mine = rows.filter(organization_id=organization_id)
            ended = api_keys.revoke_all(mine, now=now)
            if ended:
                trail.add(
                    None,
                    AccountTag.CLI_API_KEY_REVOKE,
                    organization_id=organization_id,
                    data={"revoked": ended, "key": str(options["key"] or "")},
                )
        number += ended
    return CommandResult({"revoked": number}, f"{number} API keys revoked.")


def _shown(rows: QuerySet[ApiKey]) -> CommandResult:
    now = timezone.now()
    keys = [_facts(key, now) for key in rows.select_related("environment", "creator")]
    return CommandResult({"keys": keys}, "\n".join(map(_line, keys)) or "No API keys.")


def _facts(key: ApiKey, now: datetime) -> dict[str, Any]:
    return {
        "id": str(key.pk),
        "state": key.state(now),
        "organization": key.organization_id,
        "environment": key.environment.slug,
        "name": key.name,
        "hint": key.hint,
        "role": key.role,
        "scopes": key.scopes,
        "creator": str(key.creator),
        "expires_at": _time(key.expires_at),
        "last_used_at": _time(key.last_used_at),
    }


def _time(at: datetime | None) -> str | None:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else None


def _line(key: dict[str, Any]) -> str:
    used = key["last_used_at"] or "never used"
    where = f"{key['organization']}/{key['environment']}"
    return (
        f"{key['id']}  {key['state']:8} {where}  {key['role']:8} …{key['hint']}  "
        f"until {key['expires_at']}  {used}  {key['creator']}  {key['name']!r}"
    )
