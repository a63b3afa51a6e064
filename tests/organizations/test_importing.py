"""Members from a file: all or none; every wrong line is reported."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Organization
from organizations import member_import
from organizations.models import Invitation
from tests import inbox
from tests.cast import member
from tests.commands import facts, refused, run
from tests.organizations.support import accept, mailed_token

pytestmark = pytest.mark.django_db
GOOD = """email,roles,labels
dora@example.com,reader,
ERIK@Example.com,Operator;reader,night shift; west
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "members.csv"


def load(home: Organization, file: Path, *more: str) -> Any:
    return facts("importmembers", str(file), "--organization", str(home.pk), *more)


def wrong(home: Organization, file: Path, text: str | bytes, *more: str) -> list[tuple[int, str]]:
    """Import a wrong file; return the reported lines and columns. Nothing is made."""
    before = User.objects.count()
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    where = ["--organization", str(home.pk)]
    message, error = refused("importmembers", str(file), *where, *more)
    assert error["code"] == "import_refused"
    assert User.objects.count() == before
    assert not AuditEvent.objects.filter(tag="cli:member:import").exists()
    assert not inbox.messages()
    for row in error["lines"]:
        assert f"line {row['line']}" in message
        assert row["message"] in message
    return [(row["line"], row["column"]) for row in error["lines"]]


def test_each_line_of_a_file_becomes_a_member(home: Organization, file: Path) -> None:
    file.write_text(GOOD)
    answer = load(home, file)
    assert answer == {"org_id": home.pk, "members": 2, "invited": 0, "dry_run": False}
    dora = User.objects.get(email="dora@example.com")
    assert (dora.roles, dora.labels) == (["reader"], [])
    erik = User.objects.get(email="ERIK@example.com")
    assert (erik.roles, erik.labels) == (["operator", "reader"], ["night shift", "west"])
    assert not erik.has_usable_password()
    assert erik.email_verified_at is None
    assert erik.organization_id == home.pk
    assert not inbox.messages()
    event = AuditEvent.objects.get(tag="cli:member:import")
    assert (event.organization_id, event.data) == (home.pk, {"members": 2, "invited": False})


def test_a_dry_run_checks_every_line_and_imports_none(home: Organization, file: Path) -> None:
    file.write_text(GOOD)
    text = run("importmembers", str(file), "--organization", str(home.pk), "--dry-run", "--invite")
    assert text == "2 members of Alice's would be created.\n"
    assert not User.objects.exists()
    assert not Invitation.objects.exists()
    assert not inbox.messages()
    member(home, "dora@example.com")
    assert wrong(home, file, GOOD, "--dry-run") == [(2, "email")]


def test_the_invited_set_their_passwords(home: Organization, file: Path) -> None:
    file.write_text(GOOD)
    assert load(home, file, "--invite")["invited"] == 2
    for email in ("dora@example.com", "ERIK@example.com"):
        answer = accept(mailed_token(email))
        assert answer.status == 201
    assert User.objects.count() == 2
    assert User.objects.get(email="ERIK@example.com").labels == ["night shift", "west"]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["nonsense,reader"], [(2, "email")]),
        (["a@example.com,"], [(2, "roles")]),
        (["a@example.com,owner"], [(2, "roles")]),
        (["a@example.com,owner;king"], [(2, "roles"), (2, "roles")]),
        ([",reader"], [(2, "email")]),
        (["nonsense,owner"], [(2, "email"), (2, "roles")]),
        (["a@example.com,reader,extra"], [(2, "")]),
        (["a@example.com"], [(2, "")]),
        (["a@example.com,reader", "A@EXAMPLE.COM,reader"], [(3, "email")]),
        (["Bob@example.com,reader"], [(2, "email")]),
        (
            ["a@example.com,reader", "x,reader", "b@example.com,reader", "y,z"],
            [(3, "email"), (5, "email"), (5, "roles")],
        ),
        ([f"{'x' * 250}@example.com,reader"], [(2, "email")]),
        (["", "   ,  ", "x,reader"], [(4, "email")]),
        (['"a@example.com","reader', '"', "x,reader"], [(4, "email")]),
        (['a@example.com,"reader'], [(2, "")]),
    ],
)
def test_every_wrong_line_is_reported_and_nothing_is_imported(
    home: Organization, bob: User, file: Path, lines: list[str], found: list[tuple[int, str]]
) -> None:
    assert wrong(home, file, "\n".join(["email,roles", *lines]) + "\n") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [(1, "")]),
        ("\n\n", [(1, "")]),
        ("email\n", [(1, "roles")]),
        ("name,role\n", [(1, "email"), (1, "roles"), (1, "name"), (1, "role")]),
        ("email,roles,email\n", [(1, "email"), (1, "email")]),
        (b"email,roles\na@example.com,reader\n\xff\xfe,reader\n", None),
        (b"\xff\xfee\x00m\x00a\x00i\x00l\x00", None),
        (b"email,roles\na\0@example.com,reader\n", [(2, "email")]),
        ("email,roles\n" + "x" * 140_000 + ",reader\n", [(2, "")]),
    ],
)
def test_a_file_that_is_not_a_member_list_is_reported(
    home: Organization, file: Path, text: str | bytes, found: list[tuple[int, str]] | None
) -> None:
    lines = wrong(home, file, text)
    assert lines == found if found is not None else len(lines) == 1


def test_labels_have_limits(home: Organization, file: Path) -> None:
    many = ";".join(f"label {n}" for n in range(51))
    text = f"email,roles,labels\na@example.com,reader,{many}\nb@example.com,reader,{'x' * 101}\n"
    assert wrong(home, file, text) == [(2, "labels"), (3, "labels")]


def test_a_spreadsheets_file_is_read(home: Organization, file: Path) -> None:
    """With a mark in front, columns in another order and in capitals, lines that end with CR LF."""
    text = '\ufeffLabels,EMAIL,Roles\r\n"Süd; ""Ost""",dora@example.com, reader \r\n\r\n'
    file.write_bytes(text.encode())
    assert load(home, file)["members"] == 1
    dora = User.objects.get()
    assert (dora.labels, dora.roles) == (["Süd", '"Ost"'], ["reader"])


def test_it_reads_a_pipe(home: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert facts("importmembers", "-", "--organization", str(home.pk))["members"] == 2


def test_a_missing_file_is_reported(home: Organization, tmp_path: Path) -> None:
    where = ["--organization", str(home.pk)]
    error = refused("importmembers", str(tmp_path / "none.csv"), *where)[1]
    assert error["code"] == "file_unreadable"
    error = refused("importmembers", str(tmp_path), *where)[1]
    assert error["code"] == "file_unreadable"
    error = refused("importmembers", "x.csv", "--organization", "999999")[1]
    assert error["code"] == "organization_not_found"


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a few hundred lines several batches."""
    monkeypatch.setattr(member_import, "BATCH", 200)


@pytest.mark.usefixtures("small_batches")
def test_many_lines_take_few_queries(home: Organization, file: Path) -> None:
    rows = "".join(f"user{n}@example.com,reader\n" for n in range(500))
    file.write_text("email,roles\n" + rows)
    with CaptureQueriesContext(connection) as queries:
        assert load(home, file)["members"] == 500
    assert len(queries) < 40


@pytest.mark.usefixtures("small_batches")
def test_a_wrong_line_at_the_end_undoes_all_before_it(home: Organization, file: Path) -> None:
    rows = "".join(f"user{n}@example.com,reader\n" for n in range(450))
    assert wrong(home, file, f"email,roles\n{rows}nonsense,reader\n") == [(452, "email")]


def test_an_address_that_folds_oddly_is_found_by_the_index(home: Organization, file: Path) -> None:
    """Python and PostgreSQL differ on some capitals: the index has the last word."""
    member(home, "a@straße.example")
    assert wrong(home, file, "email,roles\nb@example.com,reader\nA@straße.example,reader\n") == [
        (3, "email")
    ]


def test_without_json_a_refusal_reads_well(home: Organization, file: Path) -> None:
    file.write_text("email,roles\nnonsense,reader\ndora@example.com,king\n")
    with pytest.raises(CommandError) as caught:
        call_command("importmembers", str(file), "--organization", str(home.pk))
    assert str(caught.value).splitlines() == [
        "2 lines are wrong, nothing was imported:",
        "  line 2, email: 'nonsense' is not an e-mail address.",
        "  line 3, roles: There is no role 'king'; there are admin, operator, reader.",
    ]
    assert json.dumps(str(caught.value))
