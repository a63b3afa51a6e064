"""``manage.py exportaudit``: export the audit trail."""

import csv
import json
import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from audit import trail
from audit.models import AuditEvent
from audit.tags import TrailTag
from common.archives import unfinished_of
from common.commands import CommandRefused, CommandResult, OpsCommand
from environments.management import arguments

# A spreadsheet evaluates cells that begin with these (CWE-1236), and clients choose their
# User-Agent.
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
# The fields of GET /v1/audit.
FILTERS: Final = {
    "search": "Words, each of them anywhere in the event.",
    "tag": "Whole, or its first parts, as api:session.",
    "outcome": "As success, refused, denied.",
    "environment": "The id of one, as live.",
    "actor": "Who did it: a part of the address or name, or a user's id.",
    "affected": "Whom it affects: a part of the address, or a user's id.",
    "request-id": "Of the request that it happened in.",
}


def word(text: str) -> str:
    """Return a filter; an empty one comes from a script's unset variable and is refused.

    Raises ArgumentTypeError.
    """
    if not text:
        raise ArgumentTypeError("it may not be empty")
    return text


def moment(text: str) -> datetime:
    """Read ISO 8601; without an offset it is UTC. Raises ArgumentTypeError."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date or time, such as 2026-11-21") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


class Command(OpsCommand):
    """Write events to a file or to standard output."""

    help = (
        "Write the audit trail of one or all organizations, oldest first, as JSON lines or CSV, "
        "to --output or standard output. The filters are those of GET /v1/audit."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the filters, and the file to write to."""
        parser.add_argument("--organization", type=int, metavar="ID", help="Only of this one.")
        for name, text in FILTERS.items():
            parser.add_argument(f"--{name}", type=word, help=text)
        parser.add_argument(
            "--since",
            type=moment,
            metavar="TIME",
            help="Inclusive: 2026-11-21, or 2026-11-21T09:30+01:00; without an offset, UTC.",
        )
        parser.add_argument("--until", type=moment, metavar="TIME", help="Exclusive.")
        parser.add_argument(
            "--format",
            choices=("jsonl", "csv"),
            default="jsonl",
            help="JSON lines (the default), or CSV with a line of names.",
        )
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help="A new file, which only you can read."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Write the events that match the filters."""
        events = AuditEvent.objects.all()
        if options["organization"] is not None:
            events = trail.of_organization(arguments.organization(options["organization"]).pk)
        names = (*(name.replace("-", "_") for name in FILTERS), "since", "until")
        wanted = {name: options[name] for name in names if options[name] is not None}
        if "since" in wanted and "until" in wanted and wanted["until"] <= wanted["since"]:
            raise CommandRefused("span_empty", "--until is not after --since.")
        found = trail.rows(trail.matching(events, wanted))
        if options["output"] is None:
            if options["json"]:
                raise CommandRefused(
                    "output_missing", "With --json, name an --output for the events."
                )
            number = WRITERS[options["format"]](found, self.stdout.write)
            _note(options["organization"], wanted, number)
            self.stderr.write(f"{number} events.")
            return CommandResult({"events": number}, "")
        with _created(options["output"]) as stream:
            number = WRITERS[options["format"]](found, stream.write)
        _note(options["organization"], wanted, number)
        path = str(options["output"])
        return CommandResult({"events": number, "output": path}, f"{number} events in {path}.")


def _note(organization_id: int | None, wanted: Mapping[str, Any], number: int) -> None:
    """Record the export; after it, so that it does not contain itself."""
    filters = {name: str(value) for name, value in wanted.items()}
    data = {"events": number, "filters": filters}
    trail.add(None, TrailTag.CLI_AUDIT_EXPORT, organization_id=organization_id, data=data)


@contextmanager
def _created(path: Path) -> Iterator[TextIO]:
    """Yield a new private file, which gets its name when it is complete.

    Raises CommandRefused if the file exists or cannot be created.
    """
    unfinished = unfinished_of(path)
    if path.exists():
        raise CommandRefused("output_refused", f"{path}: File exists.")
    try:
        # A killed process may have left it.
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as exc:
        raise CommandRefused("output_refused", f"{unfinished}: {exc.strerror}.") from exc
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            yield stream
            stream.flush()
            os.fsync(descriptor)
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write_lines(rows: Iterable[Mapping[str, Any]], write: Callable[[str], Any]) -> int:
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007 - the last one is the count
        write(json.dumps(row) + "\n")
    return number


class _Sink:
    """A file-like object for the CSV writer."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self.write = write


def _write_csv(rows: Iterable[Mapping[str, Any]], write: Callable[[str], Any]) -> int:
    table = csv.writer(_Sink(write), lineterminator="\n")
    table.writerow(trail.COLUMNS)
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007 - the last one is the count
        table.writerow([_cell(row[name]) for name in trail.COLUMNS])
    return number


def _cell(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, dict) else "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULAS) else text


WRITERS: Final = {"jsonl": _write_lines, "csv": _write_csv}
