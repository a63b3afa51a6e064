"""The drill: everything comes back somewhere else, and what must not come back does not."""

import hashlib
import io
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from accounts.models import User
from edgecache.brain.models.objects import SmallBody, StoredObject
from environments.models import Organization
from operations.backup import control, manifest
from tests import cast
from tests.cast import Caller
from tests.commands import facts, refused, run
from tests.edgecache.databases import new_database, template
from tests.operations.backup.fill import OBJECTS
from tests.operations.backup.keys import Keys
from tests.operations.backup.targets import BytesRestore, rows
from tests.operations.doctor.support import findings
from tests.sqlgateway.databases.conftest import second_url
from tests.sqlgateway.databases.copies import common_schemas
from tests.waiting import wait_until
from tests.web_process import web_process

pytestmark = pytest.mark.slow

__all__ = ["second_url"]

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
# What a restore adds or changes, and says so.
CHANGED = {
    "audit_auditevent": "tag NOT LIKE 'cli:backup:%%' AND tag <> 'system:key:see'",
    "billing_progress": "name <> 'reconcile'",
}
COLUMNS = {"billing_payout": "- 'hold_reason' - 'attempts'"}
MADE_ANEW = {"sqlgateway_cluster", "sqlgateway_database", "brain_store", "brain_storedblob"}
# Tables without a row here, and why.
EMPTY = {
    "brain_discardedbytes": "the bytes would be deleted from a made-up store",
}
# The contents of an environment's database other than rows.
INSIDE = (
    "SELECT * FROM notes ORDER BY id",
    "SELECT * FROM counted ORDER BY id",
    "SELECT * FROM bodies ORDER BY body",
    "SELECT doubled(21), pg_get_functiondef('doubled'::regproc)",
    "SELECT schemaname, viewname, definition FROM pg_views WHERE viewname = 'bodies'",
    """
    SELECT schemaname, sequencename, start_value, increment_by, last_value FROM pg_sequences
    WHERE sequencename IN ('tickets', 'counted_id_seq') ORDER BY 2
    """,
    "SELECT tablename, policyname, permissive, cmd, qual, with_check FROM pg_policies",
    "SELECT relname, relrowsecurity FROM pg_class WHERE relname IN ('counted', 'notes') ORDER BY 1",
)


SqlCaller = Callable[[str], Any]


@pytest.fixture
def alice_sql(home: Organization) -> SqlCaller:
    """Return a function that runs SQL as Alice, and returns the rows."""
    alice = cast.signed_in(User.objects.get(email="alice@example.com"))

    def run(query: str) -> Any:
        answer = alice.post("/v1/sql", {"query": query})
        assert answer.status == 200, answer.body
        return answer.body["rows"]

    return run


@pytest.fixture
def target(store: Path, keys: Keys, second_url: str, tmp_path: Path) -> Iterator[BytesRestore]:
    """Return an empty platform."""
    with new_database() as control_url:
        yield BytesRestore(tmp_path, control_url, second_url, keys)


def _here() -> str:
    name = connection.settings_dict["NAME"]
    return urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()


def _contents(url: str, table: str) -> list[Any]:
    columns, condition = COLUMNS.get(table, ""), CHANGED.get(table, "true")
    row = f"(to_jsonb(t) {columns})::text"
    return rows(url, f"SELECT {row} FROM {table} AS t WHERE {condition} ORDER BY 1")  # noqa: S608 - constants


def _compare_tables(target: BytesRestore) -> None:
    """Compare all rows of all tables; each has some."""
    here = _here()
    names = {name for (name,) in rows(here, TABLES)}
    assert names == {name for (name,) in target.rows(TABLES)}
    empty = {name for name in names if not rows(here, f"SELECT FROM {name} LIMIT 1")}
    assert empty == set(EMPTY)
    void = set(control.omitted_tables()) - {control.RESTORED_LAST}
    for name in sorted(names - MADE_ANEW - {control.RESTORED_LAST}):
        wanted = [] if name in void else _contents(here, name)
        assert _contents(target.control_url, name) == wanted, name


def _compare_databases(target: BytesRestore, cluster_url: str) -> None:
    placed = target.rows(
        "SELECT dbname, admin_role, reader_role FROM sqlgateway_database WHERE state = 'active'"
    )
    assert len(placed) == 3
    former = _inside_here()
    for dbname, admin, reader in placed:
        with psycopg.connect(cluster_url, dbname=dbname) as inside:
            assert [inside.execute(query).fetchall() for query in INSIDE] == former
            found = inside.execute("SELECT body FROM notes ORDER BY id").fetchall()
            assert found == [("kept",), ("as well",)]
            closed = "SELECT has_table_privilege(%s, 'salaries', 'SELECT')"
            assert inside.execute(closed, [admin]).fetchone() == (True,)
            assert inside.execute(closed, [reader]).fetchone() == (False,)


def _inside_here() -> list[Any]:
    """Return the contents of each environment's database, which are the same."""
    [*names] = rows(_here(), "SELECT dbname FROM sqlgateway_database WHERE state = 'active'")
    found = []
    for (dbname,) in names:
        with psycopg.connect(settings.SQL.cluster_url, dbname=dbname) as inside:
            found.append([inside.execute(query).fetchall() for query in INSIDE])
    assert found == [found[0]] * 3
    assert all(found[0])
    return found[0]


def _compare_objects(target: BytesRestore) -> None:
    folder = Path(target.variables["ZBRAIN_STORE_URL"].removeprefix("file://"))
    placed = target.rows("SELECT encode(blob_id, 'hex'), name FROM brain_storedblob")
    assert len(placed) == StoredObject.objects.count() - 1 == OBJECTS
    for sha256, name in placed:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256
    # Small ones are in the database.
    ((small,),) = target.rows("SELECT body FROM brain_smallbody")
    assert bytes(small) == bytes(SmallBody.objects.get().body)


def test_what_does_not_fit_is_refused_before_anything_is_read(
    home: Organization, keys: Keys, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = facts("backup")

    def refusal(*words: str) -> str:
        return str(refused("restore", *words, "--identity", str(keys.file))[1]["code"])

    assert refusal() == "not_empty"
    assert refusal("20200101T000000.000Z-00000000") == "backup_not_found"
    with monkeypatch.context() as patched:
        patched.setattr(manifest, "code_migrations", lambda: ["accounts.0001_initial"])
        assert refusal() == "version_differs"
    accounts, ours = settings.ACCOUNTS, settings.SECRET_KEYS
    settings.ACCOUNTS = replace(accounts, mfa_keys=("m" * 40,))
    assert refusal() == "keys_differ"
    settings.ACCOUNTS = accounts
    settings.SECRET_KEYS = (Fernet.generate_key().decode(),)
    assert refusal(made["id"]) == "keys_differ"
    assert refusal() == "keys_differ"
    settings.SECRET_KEYS = ours
    single = facts("backup", "--environment", f"{home.pk}:live")
    assert refusal(single["id"]) == "backup_of_environment"


def test_one_environment_comes_back_alone(
    home: Organization, alice_sql: SqlCaller, keys: Keys, tmp_path: Path
) -> None:
    facts("backup")
    (tmp_path / "other").mkdir()
    stranger = ("--identity", str(Keys(tmp_path / "other").file))
    place = ("--environment", f"{home.pk}:live")
    assert refused("restore", *stranger, *place)[1]["code"] == "identity_differs"
    alice_sql("DELETE FROM notes; CREATE TABLE newer (id int)")
    words = ("--identity", str(keys.file), "--environment", f"{home.pk}:live")
    assert facts("restore", *words)["environment"] == "live"
    assert alice_sql("SELECT count(*) FROM notes") == [{"count": 2}]
    _works_as_any_other()
    assert (
        refused("restore", *words[:2], "--environment", "live")[1]["code"] == "environment_invalid"
    )


def test_a_database_whose_functions_find_others_comes_back_and_another_is_named(
    home: Organization, alice_sql: SqlCaller, keys: Keys
) -> None:
    alice_sql(common_schemas.MANY)
    place = ("--environment", f"{home.pk}:live")
    words = ("--identity", str(keys.file), *place)
    alice_sql("CREATE PUBLICATION p")
    made = facts("backup", *place)
    assert made["not_restorable"] == []
    lost = {"org_id": home.pk, "environment": "live", "objects": ["PUBLICATION p"]}
    assert made["left_out"] == [lost]
    alice_sql("DROP TABLE a")
    facts("restore", *words)
    assert alice_sql(common_schemas.MANY_QUERY) == [{"v": common_schemas.MANY_VALUE}]

    alice_sql(common_schemas.EXPIRED)
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("backup", "--json", *place, stdout=out, stderr=io.StringIO())
    complaint = common_schemas.EXPIRED_COMPLAINT
    [named] = json.loads(out.getvalue())["not_restorable"]
    assert named == {"org_id": home.pk, "environment": "live", "reason": complaint}
    assert caught.value.returncode == 4
    assert f"Environment {home.pk}:live is in it, but cannot be restored: {complaint}." in str(
        caught.value
    )
    assert complaint in refused("restore", *words)[0]


def test_a_recovered_database_is_voided_as_a_restored_one(
    home: Organization, alice_sql: SqlCaller
) -> None:
    void = set(control.names_of(control.CREDENTIALS_AND_QUEUES)) | {control.RESTORED_LAST}
    kept = {name for (name,) in rows(_here(), TABLES)} - void
    wanted = {table: _contents(_here(), table) for table in kept}
    assert facts("restore", "--after-recovery")["payouts_waiting"] == 1
    for table in control.names_of(control.CREDENTIALS_AND_QUEUES):
        assert rows(_here(), f"SELECT FROM {table}") == [], table
    assert {table: _contents(_here(), table) for table in kept} == wanted
    with pytest.raises(AssertionError, match="session"):
        alice_sql("SELECT 1")
    assert refused("restore")[1]["code"] == "identity_missing"
    _works_as_any_other()


def test_everything_comes_back_elsewhere_but_nothing_that_opens_an_account(
    home: Organization, store: Path, target: BytesRestore, second_url: str, tmp_path: Path
) -> None:
    backup_id = _back_up_with_a_kill(target)
    assert target.refusal(ZSQL_CLUSTER_URL=settings.SQL.cluster_url) == "cluster_taken"
    file = next(store.glob("objects/*/*"))
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert target.refusal() == "backup_altered"
    # Refused before anything was written.
    assert target.rows(TABLES) == []
    file.write_bytes(data)

    _kill_a_restore(target)
    if not _is_whole(target):
        assert target.restore()["id"] == backup_id
    _compare_tables(target)
    _compare_databases(target, second_url)
    _compare_objects(target)
    _use_as_any_other(target, tmp_path)
    held = target.rows("SELECT hold_reason <> '' AND attempts > 0 FROM billing_payout")
    assert held == [(True,)]
    # Nothing readable is left beside it.
    assert not [path for path in target.data_dir.rglob("backup/*") if path.is_file()]


def _works_as_any_other() -> None:
    """Check what ``_use_as_any_other`` does, on the platform that the test runs on."""
    assert Caller().get("/readyz").status == 200
    assert "No migrations to apply." in run("migrate")
    # SystemExit where one waits.
    run("migrate", "--check")
    assert [level for level, _, _ in findings("migrations", is_healthy=False)] == ["ok"]
    second = facts("backup")
    assert second["failed"] == 0
    assert facts("backup", "--verify", second["id"])["verified"]


def _use_as_any_other(target: BytesRestore, folder: Path) -> None:
    """Check that a restored platform is ready, migrated, and can be backed up."""
    with web_process(folder, **target.variables) as web:
        assert web.ask("GET", "/readyz")["checks"]["migrations"] == "ok"
    # Others fail: no worker and no brain runs here.
    report = json.loads(target.run("doctor", "--json", status=1))["error"]["findings"]
    assert [one["level"] for one in report if one["subject"] == "migrations"] == ["ok"]
    second = json.loads(target.run("backup", "--json"))
    assert json.loads(target.run("backup", "--verify", second["id"], "--json"))["verified"]


def test_a_platform_whose_brain_has_its_own_database_comes_back_elsewhere(
    store: Path, keys: Keys, second_url: str, target: BytesRestore, tmp_path: Path
) -> None:
    (tmp_path / "former").mkdir()
    with (
        new_database(template("control_template")) as control_url,
        new_database() as brain_url,
        new_database() as restored,
    ):
        former = BytesRestore(tmp_path / "former", control_url, second_url, keys)
        former.variables["ZBRAIN_DATABASE_URL"] = brain_url
        target.variables["ZBRAIN_DATABASE_URL"] = restored
        refusal = json.loads(former.run("backup", "--json", status=1))["error"]
        assert refusal["code"] == "migrations_pending"
        assert "`manage.py migrate --database brain`" in refusal["message"]
        report = json.loads(former.run("doctor", "--json", status=1))["error"]["findings"]
        [advice] = [one["advice"] for one in report if one["subject"] == "migrations"]
        assert advice == "Run `manage.py migrate --database brain`."
        former.run("bootstrap", "--migrate")
        former.run("backup")
        target.restore()
        _use_as_any_other(target, tmp_path)
        assert rows(restored, "SELECT name FROM brain_bucket") == [("development",)]


@pytest.mark.parametrize("is_squashed", [True, False], ids=["since", "before"])
def test_a_backup_fits_a_version_that_has_squashed_its_migrations(
    home: Organization, keys: Keys, monkeypatch: pytest.MonkeyPatch, is_squashed: bool
) -> None:
    """The backup of a version with the squashed migration alone, or with those it replaces."""
    squashed = ("platform_site", "0001_initial")
    replaced = [("platform_site", "0001_one"), ("platform_site", "0002_two")]
    module = import_module("platform_site.migrations.0001_initial")
    monkeypatch.setattr(module.Migration, "replaces", replaced)
    # As Django itself does where it applies a migration that replaces others.
    for app, name in replaced:
        MigrationRecorder(connection).record_applied(app, name)
    left_out = replaced if is_squashed else [squashed]
    here = manifest.code_migrations()
    names = [name for name in here if name not in {".".join(each) for each in left_out}]
    monkeypatch.setattr(manifest, "applied_migrations", lambda: names)
    facts("backup")
    words = ("restore", "--check", "--identity", str(keys.file))
    # The version fits: the next check is the one that refuses.
    assert refused(*words)[1]["code"] == "not_empty"
    monkeypatch.setattr(manifest, "applied_migrations", lambda: names[1:])
    facts("backup")
    assert refused(*words)[1]["code"] == "version_differs"
    for app, name in replaced:
        MigrationRecorder(connection).record_unapplied(app, name)


def _back_up_with_a_kill(target: BytesRestore) -> str:
    """Kill a backup in its last environment, and continue it; return its id."""
    here = {
        "DATABASE_URL": _here(),
        "ZSQL_CLUSTER_URL": settings.SQL.cluster_url,
        "ZDATA_DIR": str(settings.DATA_DIR),
        "ZBRAIN_STORE_URL": "file://",
    }
    last = "SELECT dbname FROM sqlgateway_database ORDER BY id DESC LIMIT 1"
    [(dbname,)] = rows(_here(), last)
    with psycopg.connect(settings.SQL.cluster_url, dbname=dbname) as blocking:
        # The dump waits for this.
        blocking.execute("LOCK TABLE notes IN ACCESS EXCLUSIVE MODE")
        running = target.start("backup", **here)
        done = settings.DATA_DIR / "backup" / "platform" / "done.jsonl"
        wait_until(
            lambda: done.exists() and done.read_text().count("environments/") == 2, timeout_s=120
        )
        running.send_signal(signal.SIGKILL)
        running.communicate()
    [unfinished] = facts("backup", "--list")["backups"]
    assert unfinished["state"] == "unfinished"
    made = facts("backup")
    assert (made["id"], made["environments"], made["failed"]) == (unfinished["id"], 3, 0)
    return str(made["id"])


def _kill_a_restore(target: BytesRestore) -> None:
    running = target.start("restore", "--identity", str(target.keys.file))
    wait_until(partial(_is_done, target, "environment:2"), timeout_s=120)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def _is_done(target: BytesRestore, step: str) -> bool:
    [(is_there,)] = target.rows("SELECT to_regclass('zonal_restore.done') IS NOT NULL")
    if is_there:
        return bool(target.rows("SELECT FROM zonal_restore.done WHERE step = %s", step))
    return _is_whole(target)


def _is_whole(target: BytesRestore) -> bool:
    [(is_there,)] = target.rows("SELECT to_regclass('django_migrations') IS NOT NULL")
    return is_there and bool(target.rows("SELECT FROM django_migrations LIMIT 1"))
