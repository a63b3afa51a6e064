"""Environments, members, keys and the cache from the command."""

import gzip
import json
import os
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

import pytest

from tests import cast
from tests.clients.cli.conftest import Run
from tests.clients.conftest import Platform
from tests.clients.front import Front

pytestmark = pytest.mark.slow


def test_environments_are_listed_and_created(alice: Run) -> None:
    assert alice("env", "create", "cli-staging").status == 0
    assert "cli-staging" in alice("env", "list").out
    used = alice("env", "use", "cli-staging")
    assert (used.status, "environment cli-staging" in used.err) == (0, True)
    assert json.loads(alice("whoami", "--json").out)["environment"]["id"] == "cli-staging"
    assert alice("env", "use", "live").status == 0
    renamed = alice("env", "rename", "cli-staging", "Rehearsal")
    assert (renamed.status, "named Rehearsal" in renamed.err) == (0, True)
    names = {each["id"]: each["name"] for each in json.loads(alice("env", "list", "--json").out)}
    assert names["cli-staging"] == "Rehearsal"
    assert alice("env", "rename", "cli-none", "Other").status == 1
    assert alice("env", "delete", "cli-staging", "--yes").status == 0
    ids = [each["id"] for each in json.loads(alice("env", "list", "--json").out)]
    assert "cli-staging" not in ids


def test_members_are_listed_and_changed(alice: Run, platform: Platform) -> None:
    cast.member(platform.home, "frank@example.com", role="reader")
    assert alice("members", "set", "frank@example.com", "--role", "operator").status == 0
    assert alice("members", "set", "FRANK@example.com", "--disable").status == 0
    (frank,) = json.loads(alice("members", "list", "--email", "frank@", "--json").out)
    assert (frank["roles"], frank["disabled"]) == (["operator"], True)
    assert alice("members", "set", "frank@example.com").status == 2
    assert alice("members", "set", "frank@example", "--enable").status == 2
    assert alice("members", "remove", "frank@example.com", "--yes").status == 0
    assert alice("members", "invite", "grace@example.com", "--role", "operator").status == 0
    assert "grace@example.com" in alice("members", "invitations").out


def test_a_member_may_have_several_roles(alice: Run, platform: Platform) -> None:
    cast.member(platform.home, "laura@example.com", role="reader")
    both = ("--role", "operator", "--role", "admin")
    assert alice("members", "set", "laura@example.com", *both).status == 0
    (laura,) = json.loads(alice("members", "list", "--email", "laura@", "--json").out)
    assert laura["roles"] == ["admin", "operator"]
    assert (
        "as admin and operator"
        in alice("members", "invite", "invited-twice@example.com", *both).err
    )
    assert "as reader" in alice("members", "invite", "invited-once@example.com").err


def test_an_api_key_is_the_only_line_of_output(
    alice: Run, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = alice("keys", "create", "nightly", "--role", "reader", "--scope", "sql:read")
    assert made.status == 0, made.err
    key = made.out.strip()
    assert key.startswith("zk_")
    (listed,) = json.loads(alice("keys", "list", "--json").out)
    assert key not in json.dumps(listed)
    assert "nightly" in alice("keys", "list", "--state", "active").out
    monkeypatch.setenv("ZONAL_TOKEN", key)
    assert alice("sql", "-c", "SELECT 1").status == 0
    assert alice("members", "list").status == 1
    monkeypatch.delenv("ZONAL_TOKEN")
    assert alice("keys", "revoke", listed["id"]).status == 0
    monkeypatch.setenv("ZONAL_TOKEN", key)
    ended = alice("sql", "-c", "SELECT 1")
    assert (ended.status, "api_key_invalid" in ended.err) == (4, True)


def test_the_cache_is_shown_and_purged(alice: Run) -> None:
    assert "healthy" in alice("cache", "status").out
    assert alice("cache", "buckets", "create", "cli-files", "--public").status == 0
    assert "cli-files" in alice("cache", "buckets", "list").out
    assert json.loads(alice("cache", "objects", "cli-files", "--json").out) == []
    assert "objects" in alice("cache", "purge", "--prefix", "cli-files/", "--preview").err
    assert "0 objects" in alice("cache", "purge", "--tag", "cli-files/none").err
    assert alice("cache", "purge").status == 2
    assert alice("cache", "purge", "--all").status == 2
    made = json.loads(alice("cache", "keys", "create", "cli", "--json").out)
    assert made["secret_access_key"]
    assert alice("cache", "keys", "delete", made["access_key_id"]).status == 0
    assert alice("cache", "buckets", "delete", "cli-files").status == 0


def test_files_are_uploaded_listed_downloaded_and_deleted(
    alice: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert alice("cache", "buckets", "create", "cli-put").status == 0
    content = bytes(range(256)) * 2000
    (tmp_path / "plan.txt").write_bytes(content)
    assert alice("cache", "put", "plan.txt", "cli-put/2026/").status == 0
    (listed,) = json.loads(alice("cache", "ls", "cli-put/2026", "--json").out)
    assert (listed["key"], listed["size"]) == ("2026/plan.txt", len(content))
    assert alice("cache", "get", "cli-put/2026/plan.txt").status == 2
    assert alice("cache", "get", "cli-put/2026/plan.txt", "copy.txt").status == 0
    assert (tmp_path / "copy.txt").read_bytes() == content
    (tmp_path / "plan.txt").write_bytes(b"older")
    assert alice("cache", "get", "cli-put/2026/plan.txt", "--force").status == 0
    assert (tmp_path / "plan.txt").read_bytes() == content
    assert alice("cache", "rm", "cli-put/2026/plan.txt").status == 2
    assert alice("cache", "rm", "cli-put/2026/plan.txt", "--yes").status == 0
    missing = alice("cache", "get", "cli-put/2026/plan.txt", "gone.txt")
    assert missing.status == 1
    assert "404 NoSuchKey: The specified key does not exist." in missing.err
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["copy.txt", "plan.txt"]
    assert alice("cache", "buckets", "delete", "cli-put").status == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("put", "missing.txt", "cli-put/a"),
        ("get", "cli-put"),
        ("get", "cli-put/.."),
        ("get", "cli-put/folder/"),
        ("rm", "/key", "--yes"),
    ],
)
def test_a_wrong_place_of_a_file_is_no_request(
    alice: Run, front: Front, wrong: tuple[str, ...]
) -> None:
    front.seen.clear()
    assert alice("cache", *wrong).status == 2
    assert front.seen == []


def test_rows_are_imported(alice: Run, tmp_path: Path) -> None:
    assert alice("sql", "-c", "CREATE TABLE cli_rows (id int PRIMARY KEY, name text)").status == 0
    file = tmp_path / "rows.csv"
    file.write_text("id;name\n1;first\n2;second\n")
    done = alice("import", "cli_rows", str(file), "--delimiter", ";")
    assert (done.status, "2 rows" in done.err) == (0, True)
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(b"third,3\n"))
    options = ("--header", "none", "--columns", "name,id", "--json")
    assert json.loads(alice("import", "cli_rows", str(packed), *options).out)["row_count"] == 1
    again = alice("import", "cli_rows", str(file), "--delimiter", ";")
    assert (again.status, "23505" in again.err) == (1, True)
    assert alice("import", "cli_rows", str(tmp_path / "none.csv")).status == 2
    assert alice("sql", "--csv", "-c", "SELECT count(*) FROM cli_rows").out.split() == [
        "count",
        "3",
    ]
    alice("sql", "-c", "DROP TABLE cli_rows")


def test_columns_of_an_import_are_named_as_in_sql(alice: Run, tmp_path: Path) -> None:
    made = 'CREATE TABLE cli_named (id int, "Full, name" text)'
    assert alice("sql", "-c", made).status == 0
    pipe = tmp_path / "pipe"
    for columns in ('ID,"Full, name"', ' "id" , "Full, name" '):
        if not pipe.exists():
            os.mkfifo(pipe)
        writer = Thread(target=lambda: pipe.write_text("1,a\n"))
        writer.start()
        done = alice("import", "cli_named", str(pipe), "--header", "none", "--columns", columns)
        writer.join()
        assert done.status == 0, done.err
    counted = alice(
        "sql", "--csv", "-c", "SELECT count(*) FROM cli_named WHERE \"Full, name\" = 'a'"
    )
    assert counted.out == "count\n2\n"
    for wrong in ("id,,a", "id;a", "1", ""):
        assert alice("import", "cli_named", "-", "--columns", wrong, stdin="1,a\n").status == 2
    alice("sql", "-c", "DROP TABLE cli_named")


def test_columns_of_a_file_are_skipped_by_name(alice: Run, front: Front) -> None:
    assert alice("sql", "-c", "CREATE TABLE cli_skipped (id int, name text)").status == 0
    content = 'Notes,name,"a,b",id\nx,first,y,1\n'
    refused = alice("import", "cli_skipped", "-", stdin=content)
    assert (refused.status, "Notes" in refused.err) == (1, True)
    done = alice("import", "cli_skipped", "-", "--skip", '"Notes", "a,b"', stdin=content)
    assert (done.status, "Imported 1 row" in done.err) == (0, True)
    assert parse_qs(front.query)["skip"] == ['"Notes","a,b"']
    assert alice("sql", "--csv", "-c", "SELECT * FROM cli_skipped").out == "id,name\n1,first\n"
    alice("sql", "-c", "DROP TABLE cli_skipped")


def test_a_refused_import_names_line_and_column_of_the_file(alice: Run, tmp_path: Path) -> None:
    assert alice("sql", "-c", "CREATE TABLE cli_bad (id int, name text)").status == 0
    content = "id,name\n1,a\nx,b\n"
    file = tmp_path / "bad.csv"
    file.write_text(content)
    for arguments, stdin, name in (
        ((str(file),), "", str(file)),
        ((str(file), "--json"), "", str(file)),
        (("-",), content, "The standard input"),
    ):
        refused = alice("import", "cli_bad", *arguments, stdin=stdin)
        assert refused.status == 1
        assert f"zonal: {name}, line 3, column id: 22P02: invalid input syntax" in refused.err
        assert "Request " in refused.err
    alice("sql", "-c", "DROP TABLE cli_bad")


def test_usage_is_shown_and_refuses_an_unknown_date(alice: Run) -> None:
    alice("sql", "-c", "SELECT 1")
    assert "environment" in alice("usage").out
    assert json.loads(alice("cache", "usage", "--since", "2026-11-01", "--json").out)["since"]
    assert alice("usage", "--since", "yesterday").status == 2
