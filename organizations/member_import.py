"""Import of members from a file: all of them, or none and a list of the errors.

A line whose address another organization's account uses, and has never verified, is left out: the
address is not free before the owner of its mailbox proves it, for example by an invitation.

The file is CSV in UTF-8, as spreadsheets write it; its first line names the columns: ``email`` and
``roles``, perhaps ``labels``. Several roles or labels are separated by semicolons. The file is read
once, some thousand lines at a time, so it may have any length or be a pipe.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, transaction
from django.db.models.functions import Upper

from accounts.models import User
from accounts.reclaim import address_release
from accounts.signin import signup
from common.emails import is_address
from common.permissions import ROLES
from environments.models import Organization
from organizations import members

REQUIRED: Final = ("email", "roles")
COLUMNS: Final = (*REQUIRED, "labels")
BATCH: Final = 2000


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member to create. line: its number in the file, from 1."""

    line: int
    email: str
    roles: list[str]
    labels: list[str]

    @property
    def key(self) -> str:
        """The address as the database compares it."""
        return self.email.upper()


@dataclass(frozen=True, slots=True)
class LineError:
    """An error in a line."""

    line: int
    column: str
    message: str


class ImportRefused(Exception):
    """The file has errors; nothing was imported."""

    def __init__(self, wrong: list[LineError]) -> None:
        super().__init__(f"{len(wrong)} lines are wrong")
        self.wrong = sorted(wrong, key=lambda each: each.line)


@dataclass
class _Progress:
    """The state of the import. seen: the line of each address; left_out: lines not imported."""

    left_out: list[LineError]
    seen: dict[str, int] = field(default_factory=dict)
    wrong: list[LineError] = field(default_factory=list)


def load(
    organization: Organization, lines: Iterable[str], left_out: list[LineError]
) -> Iterator[User]:
    """Create a member for each line; yield them as they are created.

    left_out: gets the lines whose address an account of another organization has not verified.
    They have no password, and their addresses are not verified. Call inside a transaction and
    exhaust the iterator: after the last line it raises ImportRefused if any line has an error.
    """
    progress = _Progress(left_out)
    rows = _read(lines, progress)
    while batch := list(islice(rows, BATCH)):
        free = _without_taken(organization, batch, progress)
        # After the first error the rest of the file is only checked.
        if not progress.wrong:
            yield from _make(organization, free, progress)
    if progress.wrong:
        raise ImportRefused(progress.wrong)


def _read(lines: Iterable[str], progress: _Progress) -> Iterator[MemberRow]:
    """Return the rows that are valid by themselves; record the errors of the others."""
    reader = csv.reader(lines, strict=True)
    columns: list[str] | None = None
    end = 0
    try:
        for cells in reader:
            line, end = end + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if columns is None:
                columns = _columns(cells, line, progress)
                if not columns:
                    return
                continue
            row = _row(columns, cells, line, progress)
            if row is not None:
                yield row
    except csv.Error as exc:
        progress.wrong.append(LineError(reader.line_num, "", f"This is not CSV: {exc}."))
    except UnicodeDecodeError:
        progress.wrong.append(LineError(end + 1, "", "From about here on it is not UTF-8."))
    if columns is None and not progress.wrong:
        progress.wrong.append(LineError(1, "", "The file is empty."))


def _columns(cells: list[str], line: int, progress: _Progress) -> list[str]:
    names = [cell.strip().casefold() for cell in cells]
    before = len(progress.wrong)
    for name in REQUIRED:
        if name not in names:
            message = f"The first line has to name the column {name}."
            progress.wrong.append(LineError(line, name, message))
    for name in names:
        if name not in COLUMNS:
            message = f"There is no column {name!r}; there are {', '.join(COLUMNS)}."
            progress.wrong.append(LineError(line, name, message))
        elif names.count(name) > 1:
            progress.wrong.append(LineError(line, name, f"The column {name} is named twice."))
    return names if len(progress.wrong) == before else []


def _row(columns: list[str], cells: list[str], line: int, progress: _Progress) -> MemberRow | None:
    if len(cells) != len(columns):
        message = f"{len(cells)} cells, where there are {len(columns)} columns."
        progress.wrong.append(LineError(line, "", message))
        return None
    given = dict(zip(columns, cells, strict=True))
    email, roles = given["email"].strip(), _words(given["roles"].casefold())
    labels = _words(given.get("labels", ""))
    wrong = list(_faults(line, email, roles, labels, progress.seen))
    progress.wrong += wrong
    if wrong:
        return None
    row = MemberRow(
        line, signup.canonical(email), [role for role in ROLES if role in roles], labels
    )
    progress.seen[row.key] = line
    return row


def _words(cell: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in cell.split(";") if word.strip()))


def _faults(
    line: int, email: str, roles: list[str], labels: list[str], seen: Mapping[str, int]
) -> Iterator[LineError]:
    if not is_address(email):
        yield LineError(line, "email", f"{email!r} is not an e-mail address.")
    elif (before := seen.get(signup.canonical(email).upper())) is not None:
        yield LineError(line, "email", f"{email} is in line {before} already.")
    if not roles:
        yield LineError(line, "roles", f"At least one of {', '.join(ROLES)}.")
    for role in roles:
        if role not in ROLES:
            yield LineError(
                line, "roles", f"There is no role {role!r}; there are {', '.join(ROLES)}."
            )
    for message in members.label_faults(labels):
        yield LineError(line, "labels", message)


def _without_taken(
    organization: Organization, batch: list[MemberRow], progress: _Progress
) -> list[MemberRow]:
    users = User.objects.annotate(key=Upper("email"))
    found = users.filter(key__in=[row.key for row in batch])
    holders = {user.key: user for user in found}
    free = []
    for row in batch:
        holder = holders.get(row.key)
        if holder is None:
            free.append(row)
        elif address_release.is_free_for(holder, organization):
            message = f"{row.email} has an account that never verified it; invite it instead."
            progress.left_out.append(LineError(row.line, "email", message))
        else:
            message = f"{row.email} has an account already."
            progress.wrong.append(LineError(row.line, "email", message))
    return free


def _make(organization: Organization, batch: list[MemberRow], progress: _Progress) -> list[User]:
    users = [
        User(
            organization=organization,
            email=row.email,
            password=make_password(None),
            roles=row.roles,
            labels=row.labels,
        )
        for row in batch
    ]
    try:
        with transaction.atomic():
            User.objects.bulk_create(users)
    except IntegrityError:
        progress.wrong += _offenders(batch, users)
        return []
    return users


def _offenders(batch: list[MemberRow], users: list[User]) -> Iterator[LineError]:
    """Find the rows that violate the unique index of addresses."""
    for row, user in zip(batch, users, strict=True):
        try:
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError:
            yield LineError(row.line, "email", f"{row.email} has an account already.")
