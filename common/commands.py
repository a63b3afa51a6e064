"""The base of management commands: output for people and scripts, errors, exit status."""

import json
from abc import abstractmethod
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, transaction
from procrastinate.exceptions import ConnectorException

from common.errors import PlatformError
from common.machine.reasons import reason
from common.pending_migrations import NOT_MIGRATED, is_not_migrated
from common.problems import is_database_unreachable, unavailable
from common.scoping import unscoped

REFUSED: Final = 1
DATABASE_UNREACHABLE: Final = 3
UNFINISHED: Final = 4
DRY_RUN_HELP: Final = "Check and show everything, keep nothing."
EXITS: Final = (
    "Exit status: 0 done; 1 refused, and nothing was changed; 2 called wrongly; 3 the database "
    "does not answer or takes no writes, so try again; 4 begun and not complete, as the message "
    "says."
)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: facts for scripts, and text for people.

    unfinished: a sentence if other processes still have to do work; the exit status is then 4.
    """

    facts: Mapping[str, Any]
    text: str
    unfinished: str = ""


class CommandRefused(Exception):
    """The command cannot be carried out.

    code: stable, lower_snake, for scripts. message: sentences for people. facts: further members
    of the JSON error.
    """

    status = REFUSED

    def __init__(self, code: str, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts


class Unreachable(CommandRefused):
    """A service other than the control database that a command needs does not respond."""

    status = DATABASE_UNREACHABLE


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An error in its printed form."""

    code: str
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class OpsCommand(BaseCommand):
    """A command whose ``run`` returns an outcome, or raises CommandRefused or a PlatformError.

    With ``--json`` standard output is one JSON object, the facts or ``{"error": {"code", …}}``;
    the sentence of an error goes to standard error in both cases.
    """

    # True adds --dry-run, for a command that changes the control database and nothing else.
    has_dry_run: ClassVar[bool] = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add the common options and the list of exit statuses."""
        parser = super().create_parser(prog_name, subcommand, epilog=EXITS, **kwargs)
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        if self.has_dry_run:
            parser.add_argument("--dry-run", action="store_true", help=DRY_RUN_HELP)
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add no options."""

    @abstractmethod
    def run(self, options: dict[str, Any]) -> CommandResult:
        """Do the work of the command."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, and print the outcome or the error."""
        try:
            _refuse_no_text(options)
            is_dry = self.has_dry_run and options["dry_run"]
            with unscoped("operators act on every organization"):
                outcome = self._rolled_back(options) if is_dry else self.run(options)
        except CommandRefused as exc:
            refusal = _Refusal(exc.code, exc.message, exc.facts)
            raise self._refuse(refusal, options, status=exc.status) from exc
        except PlatformError as exc:
            raise self._refuse(_of_platform(exc), options) from exc
        except (DatabaseError, InterfaceError, ConnectorException) as exc:
            if is_not_migrated(exc):
                refusal = _Refusal("database_not_migrated", NOT_MIGRATED)
                raise self._refuse(refusal, options) from exc
            if not is_database_unreachable(exc):
                raise
            error = _of_platform(unavailable(exc))
            error = replace(error, message=f"{error.message} {reason(exc)}")
            raise self._refuse(error, options, status=DATABASE_UNREACHABLE) from exc
        said = json.dumps(outcome.facts) if options["json"] else outcome.text
        if said:
            self.stdout.write(said)
        if outcome.unfinished:
            raise CommandError(outcome.unfinished, returncode=UNFINISHED)

    def _rolled_back(self, options: dict[str, Any]) -> CommandResult:
        """Run in a transaction that is rolled back, including queued mails and tasks."""
        with transaction.atomic():
            outcome = self.run(options)
            transaction.set_rollback(True)
        text = f"{outcome.text}\nA dry run: nothing was changed."
        return replace(outcome, facts={**outcome.facts, "dry_run": True}, text=text)

    def _refuse(
        self, refusal: _Refusal, options: dict[str, Any], *, status: int = REFUSED
    ) -> CommandError:
        if options["json"]:
            error = {"code": refusal.code, "message": refusal.message, **refusal.facts}
            self.stdout.write(json.dumps({"error": error}))
        return CommandError(refusal.message, returncode=status)


def _refuse_no_text(options: Mapping[str, Any]) -> None:
    """Refuse an argument that no row can hold: with NUL, or of bytes that are not UTF-8.

    A path only must not have NUL: file names are bytes.
    """
    for name, value in options.items():
        texts = [str(each) for each in (value if isinstance(value, list) else [value])]
        is_whole = isinstance(value, Path) or all(_is_utf8(text) for text in texts)
        if not is_whole or any("\0" in text for text in texts):
            raise CommandRefused("argument_invalid", f"The argument {name} is not a text.")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_platform(exc: PlatformError) -> _Refusal:
    wrong = [error.as_json() for error in exc.fields]
    # A command is no request: it names the fields in place of the title.
    named = [f"{error.field}: {error.message}" for error in exc.fields]
    said = [exc.detail, *named] if named else [exc.title, exc.detail]
    message = " ".join(text for text in [*said, exc.for_operators] if text)
    return _Refusal(exc.code, message, {"errors": wrong} if wrong else {})
