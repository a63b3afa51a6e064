"""``manage.py importmembers``: import members of an organization from a file."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, TextIO

from django.db import transaction
from django.utils import timezone

from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from environments.management import arguments
from environments.models import Organization
from organizations import invitations, member_import
from organizations.audit_tags import OrganizationTag
from organizations.invitations import Inviter
from organizations.member_import import ImportRefused, LineError

# Spreadsheets write a byte order mark, which would become part of the first column's name.
ENCODING: Final = "utf-8-sig"


class Command(OpsCommand):
    """Import members from a CSV file."""

    help = (
        "Create members of an organization from a CSV file in UTF-8. The first line names the "
        "columns: email, roles and, optionally, labels; several roles or labels are separated by "
        "semicolons (dora@example.com,reader;operator,night shift). If any line has an error, no "
        "member is created. No passwords are set: members sign in with an identity provider, by "
        "recovery or with --invite."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the file, the organization and the dry run."""
        parser.add_argument("file", metavar="FILE.csv", help="The file; - is standard input.")
        parser.add_argument(
            "--organization",
            type=int,
            required=True,
            metavar="ID",
            help="Organization of the members.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Check the file, and create nothing."
        )
        parser.add_argument(
            "--invite", action="store_true", help="Mail each a link to set a password."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Import the members."""
        home, is_dry = arguments.organization(options["organization"]), options["dry_run"]
        left_out: list[LineError] = []
        try:
            with _opened(options["file"]) as lines, transaction.atomic():
                number = _load(home, lines, left_out, is_inviting=options["invite"])
                transaction.set_rollback(is_dry)
        except ImportRefused as exc:
            raise _refusal(exc.wrong) from exc
        facts: dict[str, Any] = {
            "org_id": home.pk,
            "members": number,
            "invited": number if options["invite"] else 0,
            "dry_run": is_dry,
        }
        text = f"{number} members of {home.name}"
        text = f"{text} would be created." if is_dry else f"{text} were created."
        if left_out:
            facts["left_out"] = _rows(left_out)
            text = "\n".join([f"{text} {_counted(left_out)} left out:", *_listed(left_out)])
        return CommandResult(facts, text)


def _load(
    home: Organization, lines: TextIO, left_out: list[LineError], *, is_inviting: bool
) -> int:
    number, now = 0, timezone.now()
    for member in member_import.load(home, lines, left_out):
        number += 1
        if is_inviting:
            invitations.invite_member(member, inviter=Inviter(), now=now)
    data = {"members": number, "invited": is_inviting}
    trail.add(None, OrganizationTag.CLI_MEMBER_IMPORT, organization_id=home.pk, data=data)
    return number


@contextmanager
def _opened(name: str) -> Iterator[TextIO]:
    if name == "-":
        yield TextIOWrapper(sys.stdin.buffer, encoding=ENCODING, newline="")
        return
    with ExitStack() as stack:
        try:
            lines = stack.enter_context(Path(name).open(encoding=ENCODING, newline=""))
        except OSError as exc:
            raise CommandRefused(
                "file_unreadable", f"{name} cannot be read: {exc.strerror}."
            ) from exc
        yield lines


def _refusal(wrong: list[LineError]) -> CommandRefused:
    head = f"{_counted(wrong)} wrong, nothing was imported:"
    return CommandRefused("import_refused", "\n".join([head, *_listed(wrong)]), lines=_rows(wrong))


def _counted(errors: list[LineError]) -> str:
    count = len({each.line for each in errors})
    return f"{count} {'line is' if count == 1 else 'lines are'}"


def _listed(errors: list[LineError]) -> list[str]:
    return [
        f"  line {each.line}{f', {each.column}' if each.column else ''}: {each.message}"
        for each in errors
    ]


def _rows(errors: list[LineError]) -> list[dict[str, Any]]:
    return [{"line": each.line, "column": each.column, "message": each.message} for each in errors]
