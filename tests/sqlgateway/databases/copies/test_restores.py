"""An environment's data goes to a file and comes back; the file may be anyone's."""

import stat
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pytest_django.fixtures import Settings

from audit.models import AuditEvent
from common.commands import CommandRefused
from sqlgateway.clusters.servers import address_of, administer
from sqlgateway.databases import tenant_databases
from sqlgateway.databases.copies import (
    archives,
    programs,
    restores,
    switching,
    temporary_roles,
    trials,
)
from sqlgateway.databases.copies.reading import reading_role
from sqlgateway.models import RetiredDatabase
from tests.commands import facts, refused
from tests.sqlgateway.databases.copies.test_clones import SLOW
from tests.sqlgateway.support import Caller, as_provisioner
from tests.waiting import wait_until

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

# Those that an environment's admin role may enter.
DATABASES = "SELECT count(*) FROM pg_database WHERE has_database_privilege(%s, oid, 'CONNECT')"


def _dump(someone: Caller, file: Path) -> Path:
    facts("dumpenvironment", str(someone.scope.organization_id), "live", str(file))
    return file


def _restore(someone: Caller, file: Path, *options: str) -> None:
    arguments = (str(someone.scope.organization_id), "live", str(file), *options)
    facts("restoreenvironment", *arguments)


def test_what_looks_like_the_platforms_is_restored_and_what_is_not_is_named(
    alice: Caller, tmp_path: Path
) -> None:
    assert alice.sql("CREATE TABLE zonal.mine (id int)").body["sqlstate"] == "42501"
    # Their names are words of pg_restore's list, too.
    for schema in ("APP", "DATA"):
        alice.sql(f'CREATE SCHEMA "{schema}"; CREATE TABLE "{schema}".zonal AS SELECT 7 AS id')
    alice.sql("CREATE PUBLICATION p")
    file = tmp_path / "live.dump"
    organization = str(alice.scope.organization_id)

    made = facts("dumpenvironment", organization, "live", str(file))
    restored = facts("restoreenvironment", organization, "live", str(file))

    for schema in ("APP", "DATA"):
        assert alice.value(f'TABLE "{schema}".zonal') == 7
    assert made["left_out"] == restored["left_out"] == ["PUBLICATION p"]
    assert AuditEvent.objects.get(tag="cli:database:dump").data["left_out"] == ["PUBLICATION p"]


def _refusal(someone: Caller, file: Path, *options: str) -> str:
    arguments = (str(someone.scope.organization_id), "live", str(file), *options)
    return str(refused("restoreenvironment", *arguments)[1]["code"])


def test_a_dump_brings_the_data_back_and_what_was_closed_stays_closed(
    alice: Caller, tmp_path: Path
) -> None:
    alice.sql(
        """
        CREATE TABLE items (id int GENERATED ALWAYS AS IDENTITY, name text);
        INSERT INTO items (name) VALUES ('first');
        CREATE TABLE salaries (amount int);
        REVOKE ALL ON salaries FROM PUBLIC;
        CREATE EXTENSION hstore;
        """
    )
    assert alice.post({"query": "SELECT 1"}, Idempotency_Key="k").status == 200
    file = _dump(alice, tmp_path / "live.dump")
    alice.sql("DROP TABLE salaries; DELETE FROM items; CREATE TABLE newer (id int)")
    before = alice.database.dbname

    _restore(alice, file)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert alice.database.dbname != before
    assert alice.value("SELECT name FROM items") == "first"
    assert alice.be("operator").value("INSERT INTO items (name) VALUES ('x') RETURNING id") == 2
    assert alice.be("reader").sql("SELECT * FROM salaries").body["sqlstate"] == "42501"
    assert alice.sql("SELECT * FROM newer").body["sqlstate"] == "42P01"
    alice.sql("CREATE TABLE later (id int)")
    assert alice.be("reader").sql("SELECT * FROM later").status == 200
    # The replaced database is kept, closed to everyone, and its roles live on.
    (kept,) = RetiredDatabase.objects.all()
    assert (kept.dbname, kept.roles) == (before, [])
    with pytest.raises(psycopg.OperationalError, match="not currently accepting"):
        psycopg.connect(alice.database.cluster.url, dbname=before)


CLOSED = """
    CREATE TABLE hidden AS SELECT 1 AS id;
    REVOKE ALL ON hidden FROM CURRENT_USER, PUBLIC, {operator}, {reader};
"""


def _close_a_table(someone: Caller) -> None:
    someone.value("SELECT 1")
    roles = {str(role): name for role, name in someone.database.roles.items()}
    assert someone.sql(CLOSED.format(**roles)).status == 200


def test_what_an_admin_took_from_itself_is_restored_and_stays_closed(
    alice: Caller, tmp_path: Path
) -> None:
    _close_a_table(alice)
    file = _dump(alice, tmp_path / "live.dump")
    assert b"hidden" in file.read_bytes()
    major = alice.database.cluster.server_version // 10_000
    contents = archives.read_contents(file, alice.database.admin_role, major=major)
    text = programs.print_entries(file, contents.privileges, major=major)
    assert set(temporary_roles.ROLE_NAME.findall(text)) <= set(alice.database.roles.values())

    _restore(alice, file)

    assert alice.sql("SELECT id FROM hidden").body["sqlstate"] == "42501"
    assert alice.value("SELECT count(*) FROM pg_class WHERE relname = 'hidden'") == 1


def test_a_dump_that_names_the_reader_of_another_one_is_restored(
    alice: Caller, tmp_path: Path
) -> None:
    _close_a_table(alice)
    address = address_of(alice.database.cluster)
    with reading_role(address, alice.database) as other:
        file = _dump(alice, tmp_path / "live.dump")

    _restore(alice, file)

    assert alice.sql("SELECT id FROM hidden").body["sqlstate"] == "42501"
    acl = "SELECT relacl::text FROM pg_class WHERE relname = 'hidden'"
    assert other.user not in alice.value(acl)
    with administer(address) as server:
        roles = "SELECT count(*) FROM pg_roles WHERE rolname = %s"
        assert server.execute(roles, [other.user]).fetchone() == (0,)


def test_the_clients_of_postgresql_are_enough(
    alice: Caller, tmp_path: Path, settings: Settings
) -> None:
    """As in the image, which has no server."""
    alice.sql("CREATE TABLE items AS SELECT 7 AS id")
    installed = programs.folder(alice.database.cluster.server_version // 10000)
    clients = tmp_path / "clients"
    clients.mkdir()
    for name in ("pg_dump", "pg_restore"):
        (clients / name).symlink_to(installed / name)
    settings.SERVER = replace(settings.SERVER, postgres_bindir=str(clients))
    programs.folder.cache_clear()
    try:
        assert programs.folder(alice.database.cluster.server_version // 10000) == clients
        file = _dump(alice, tmp_path / "live.dump")
        alice.sql("DROP TABLE items")
        _restore(alice, file)
    finally:
        programs.folder.cache_clear()
    assert alice.value("SELECT id FROM items") == 7


def test_a_dump_of_another_environment_needs_a_word(
    alice: Caller, charlie: Caller, tmp_path: Path
) -> None:
    charlie.sql("CREATE TABLE items AS SELECT 7 AS id")
    alice.sql("CREATE TABLE own (id int)")
    file = _dump(charlie, tmp_path / "charlie.dump")

    assert _refusal(alice, file) == "owners_differ"
    assert alice.sql("SELECT * FROM own").status == 200
    _restore(alice, file, "--all-to-admin")

    assert alice.be("reader").value("SELECT id FROM items") == 7
    assert charlie.value("SELECT id FROM items") == 7


def test_a_hostile_dump_gets_no_further_than_its_tenant(alice: Caller, tmp_path: Path) -> None:
    alice.sql("CREATE TABLE items AS SELECT 1 AS id")
    with administer(address_of(alice.database.cluster), alice.database.dbname) as inside:
        # Only a superuser may make it, so the dump says what no tenant could do.
        inside.execute(
            "CREATE FUNCTION public.escape() RETURNS int LANGUAGE internal AS 'pg_backend_pid'"
        )
        inside.execute(
            f"ALTER FUNCTION public.escape() OWNER TO {alice.database.admin_role}".encode()
        )
    file = _dump(alice, tmp_path / "hostile.dump")
    admin = [alice.database.admin_role]

    assert _refusal(alice, file) == "copy_failed"
    script = tmp_path / "script.sql"
    script.write_text("\\! id\nDROP TABLE items;\n")
    assert _refusal(alice, script) == "copy_failed"
    cut = tmp_path / "cut.dump"
    cut.write_bytes(file.read_bytes()[:200])
    assert _refusal(alice, cut) == "copy_failed"
    assert _refusal(alice, tmp_path / "absent") == "copy_failed"

    assert alice.value("SELECT id FROM items") == 1
    assert as_provisioner(DATABASES, admin) == [(1,)]


def test_a_restore_whose_process_was_killed_is_undone(
    alice: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.sql("CREATE TABLE items AS SELECT 1 AS id")
    file = _dump(alice, tmp_path / "live.dump")
    admin = [alice.database.admin_role]

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(tenant_databases, "set_passwords", killed)
        patched.setattr(switching, "try_roll_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            restores.restore(alice.database, file, all_to_admin=False)
    assert as_provisioner(DATABASES, admin) == [(2,)]
    switching.recover()

    assert alice.value("SELECT id FROM items") == 1
    assert as_provisioner(DATABASES, admin) == [(1,)]


def test_a_platform_restore_that_takes_too_long_runs_on_nowhere(
    alice: Caller, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restore computes what the tenant's materialized views say."""
    monkeypatch.setattr(trials, "MAX_S", 1.0)
    assert alice.sql(SLOW).status == 200
    file, database = _dump(alice, tmp_path / "live.dump"), alice.database
    settings.SQL = replace(settings.SQL, copy_timeout_s=2)
    tenant_databases.create(database)
    with pytest.raises(CommandRefused):
        restores.fill_new(database, file)

    running = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
    wait_until(lambda: as_provisioner(running, [database.dbname]) == [(0,)])


def test_a_dump_is_audited(alice: Caller, tmp_path: Path) -> None:
    alice.value("SELECT 1")
    _dump(alice, tmp_path / "live.dump")
    event = AuditEvent.objects.get(tag="cli:database:dump")
    assert (event.organization_id, event.environment_id) == (alice.scope.organization_id, "live")
    assert event.data["database"] == alice.database.pk


def test_a_dump_never_replaces_a_file(alice: Caller, tmp_path: Path) -> None:
    alice.value("SELECT 1")
    file = tmp_path / "live.dump"
    file.write_text("mine")

    arguments = (str(alice.scope.organization_id), "live", str(file))
    assert refused("dumpenvironment", *arguments)[1]["code"] == "file_unwritable"
    assert file.read_text() == "mine"
