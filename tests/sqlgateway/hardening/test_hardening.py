"""The hardening itself: with a template and without one, again and again."""

import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.core.management import call_command
from django.test import override_settings
from pytest_django import Settings

from sqlgateway import names
from sqlgateway.clusters import servers
from sqlgateway.databases import password_rotation, stock, tenant_databases
from sqlgateway.hardening.cluster import complaints, version_complaint
from sqlgateway.hardening.database import REVOKED_FUNCTIONS, REVOKED_RELATIONS
from sqlgateway.hardening.scram import scram_of
from sqlgateway.models import Cluster, Database
from tests.documents.blocks import ROOT
from tests.sqlgateway.support import Caller, as_provisioner
from tests.waiting import wait_until

pytestmark = pytest.mark.provisions

# What PUBLIC may still execute or read inside a database, as a digest that is easy to compare.
STATE = """
SELECT 'f', p.oid::regprocedure::text, p.proacl::text FROM pg_proc p
WHERE p.pronamespace = 'pg_catalog'::regnamespace
UNION ALL
SELECT 'r', c.oid::regclass::text, c.relacl::text FROM pg_class c
WHERE c.relnamespace = 'pg_catalog'::regnamespace
UNION ALL
SELECT 'l', lanname, regexp_replace(lanacl::text, 'zr_\\w+', 'admin') FROM pg_language
UNION ALL
SELECT 's', nspname, regexp_replace(nspacl::text, 'zr_\\w+', 'role', 'g') FROM pg_namespace
WHERE nspname = 'public'
ORDER BY 1, 2
"""


def _state(someone: Caller) -> list[tuple[object, ...]]:
    address = servers.address_of(servers.default())
    with servers.administer(address, someone.database.dbname) as inside:
        return inside.execute(STATE.encode()).fetchall()


def test_a_database_made_without_a_template_is_as_hard(alice: Caller, charlie: Caller) -> None:
    alice.value("SELECT 1")
    cluster = Cluster.objects.get()
    cluster.flags = [flag for flag in cluster.flags if flag != "template"]
    cluster.save()
    charlie.value("SELECT 1")

    assert _state(alice) == _state(charlie)
    assert charlie.sql("SELECT * FROM pg_authid").status == 403
    assert charlie.sql("CREATE TABLE t (id int)").status == 200


def test_hardening_again_changes_nothing_and_ends_no_connection(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    before = _state(alice)

    call_command("hardendatabases", "--all")
    call_command("hardendatabases", "--all")

    assert _state(alice) == before
    assert alice.value("SELECT count(*) FROM t") == 0


def test_hardening_takes_back_what_was_let_go(
    alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    alice.value("SELECT 1")
    before = _state(alice)
    address = servers.address_of(servers.default())
    with servers.administer(address, alice.database.dbname) as inside:
        inside.execute("GRANT EXECUTE ON FUNCTION pg_export_snapshot() TO PUBLIC")
        inside.execute("GRANT SELECT ON pg_database TO PUBLIC")
    database = alice.database
    database.hardening = 0
    database.save()

    call_command("hardendatabases", "--dry-run")
    assert "1 to harden." in capsys.readouterr().out
    assert _state(alice) != before
    call_command("hardendatabases")

    assert _state(alice) == before
    assert "1 hardened." in capsys.readouterr().out
    call_command("hardendatabases")
    assert "0 hardened." in capsys.readouterr().out


LIMITS = """
SELECT datconnlimit, ARRAY(SELECT rolconnlimit FROM pg_roles WHERE rolname = ANY(%s))
FROM pg_database WHERE datname = %s
"""


def test_changed_connection_limits_reach_databases_that_exist(
    alice: Caller, settings: Settings
) -> None:
    alice.value("SELECT 1")
    row = alice.database
    values = [list(row.roles.values()), row.dbname]
    before = as_provisioner(LIMITS, values)
    settings.SQL = replace(settings.SQL, database_connections=11)
    call_command("hardendatabases")
    assert as_provisioner(LIMITS, values) == before

    call_command("hardendatabases", "--all")

    assert as_provisioner(LIMITS, values) == [(11, [7, 7, 7])]


def test_hardening_does_not_set_back_passwords_that_are_rotated_meanwhile(
    alice: Caller, charlie: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for someone in (alice, charlie):
        someone.value("SELECT 1")
    harden = tenant_databases.harden

    def after_a_rotation(address: servers.ClusterAddress, row: Database, **options: bool) -> None:
        if row.pk == alice.database.pk:
            password_rotation.rotate(charlie.database)
        harden(address, row, **options)

    monkeypatch.setattr(tenant_databases, "harden", after_a_rotation)
    call_command("hardendatabases", "--all")

    for role, user in charlie.database.roles.items():
        verifier = scram_of(user, charlie.database.passwords[role]).verifier
        kept = "SELECT rolpassword FROM pg_authid WHERE rolname = %s"
        assert as_provisioner(kept, [user]) == [(verifier,)]


def test_what_is_shared_by_all_databases_is_hidden(alice: Caller) -> None:
    names = as_provisioner(
        "SELECT relname FROM pg_class WHERE relisshared AND relkind = 'r' ORDER BY 1"
    )
    assert len(names) >= 10
    for (name,) in [*names, *((name,) for name in REVOKED_RELATIONS)]:
        answer = alice.sql(f"TABLE pg_catalog.{name}")
        assert answer.body["sqlstate"] in {"42501", "42P01"}, name


def test_no_role_can_connect_to_the_template(alice: Caller) -> None:
    alice.value("SELECT 1")

    ((allowed, public),) = as_provisioner(
        "SELECT datallowconn, has_database_privilege('public', datname, 'CONNECT') "
        "FROM pg_database WHERE datname = %s",
        [tenant_databases.TEMPLATE],
    )

    assert (allowed, public) == (False, False)


@pytest.fixture
def own_template(databases: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have a template made that no other test makes or uses; give its name."""
    name = f"zt_test_{secrets.token_hex(4)}"
    monkeypatch.setattr(tenant_databases, "TEMPLATE", name)
    monkeypatch.setattr(names, "template_name", lambda: f"{name}_{secrets.token_hex(4)}")
    yield name
    as_provisioner(f"DROP DATABASE IF EXISTS {name}")


def _made(template: str) -> list[tuple[object, ...]]:
    return as_provisioner("SELECT datname FROM pg_database WHERE datname ~ %s", [f"^{template}"])


def test_the_template_is_made_once(own_template: str) -> None:
    address = servers.address_of(servers.default())
    tenant_databases.ensure_template(address)
    tenant_databases.ensure_template(address)

    assert _made(own_template) == [(own_template,)]


def test_a_template_that_another_process_just_makes_is_left_to_it(own_template: str) -> None:
    address = servers.address_of(servers.default())
    with servers.administer(address) as other, ThreadPoolExecutor(1) as pool:
        other.execute(f"CREATE DATABASE {own_template}_theirs".encode())
        with other.transaction():
            other.execute(f"ALTER DATABASE {own_template}_theirs RENAME TO {own_template}".encode())
            ours = pool.submit(tenant_databases.ensure_template, address)
            # Both have checked that the name is free; ours waits for what becomes of theirs.
            wait_until(
                lambda: as_provisioner(
                    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ %s",
                    [f"RENAME TO .{own_template}"],
                )
            )
        ours.result(30)

    assert _made(own_template) == [(own_template,)]


def test_unsafe_properties_of_a_server_are_reported(databases: None) -> None:
    address = servers.address_of(servers.default())
    with servers.administer(address) as connection:
        version = connection.info.server_version
        said = list(complaints(connection))
        connection.execute("SET jit = on")
        worse = list(complaints(connection))

    assert [line for line in worse if line not in said] == ["jit is on; it should be off."]
    assert any("ALTER ROLE" in line for line in said) is (version < 160000)


def test_a_server_with_known_holes_is_refused_in_production(alice: Caller) -> None:
    assert version_complaint(180007) is None
    assert version_complaint(170012) is None
    assert "18.6 is older than 18.7" in str(version_complaint(180006))
    assert "14 is not among" in str(version_complaint(140000))

    ((version,),) = as_provisioner("SHOW server_version_num")
    Cluster.objects.update(flags=[])
    with override_settings(IS_PRODUCTION=True):
        answer = alice.sql("SELECT 1")

    assert answer.status == (200 if version_complaint(int(version)) is None else 503)


def test_roles_have_settings_and_limits(alice: Caller) -> None:
    alice.value("SELECT 1")
    rows = as_provisioner(
        "SELECT rolconnlimit, rolconfig FROM pg_roles WHERE rolname = ANY(%s)",
        [list(alice.database.roles.values())],
    )

    for limit, config in rows:
        assert limit == 20
        assert {"temp_file_limit=1048576kB", "log_min_messages=fatal"} <= set(config)
    ((database_limit,),) = as_provisioner(
        "SELECT datconnlimit FROM pg_database WHERE datname = %s", [alice.database.dbname]
    )
    assert database_limit == 30


def test_a_database_in_stock_is_hardened_too(databases: None) -> None:
    stock.refill(1)

    assert stock.size() == 1


def test_the_documents_list_everything_that_is_revoked() -> None:
    section = (ROOT / "docs/sql.md").read_text().partition("## What is refused")[2]
    table = section.partition("\n\nCatalogues")[0].partition("|---|---|")[2]
    refused = [line.split("|")[1] for line in table.splitlines() if line]
    listed = [name for cell in refused for name in re.findall("`([^`]+)`", cell)]
    patterns = [name.replace("\\_", "_").replace("%", "*") for name in REVOKED_FUNCTIONS]
    assert sorted(set(listed)) == sorted({*REVOKED_RELATIONS, *patterns, "pg_stat_progress_*"})
    assert len(listed) == len(set(listed))


def test_what_the_platform_refuses_to_all_has_a_hint(alice: Caller) -> None:
    for text, words in (
        ("SELECT pg_advisory_xact_lock(1)", "FOR UPDATE"),
        ("SELECT pg_try_advisory_lock_shared(1, 2)", "LOCK TABLE"),
        ("SELECT lo_create(0)", "What is refused"),
        ("SELECT query_to_xml('SELECT 1', true, true, '')", "What is refused"),
        ("TABLE pg_locks", "What is refused"),
    ):
        answer = alice.sql(text)
        assert (answer.status, answer.body["sqlstate"]) == (403, "42501"), answer.body
        assert words in answer.body["hint"]
    alice.sql("CREATE TABLE t (id int); REVOKE ALL ON t FROM PUBLIC")
    assert "hint" not in alice.be("reader").sql("TABLE t").body


def test_a_trigger_may_notify(alice: Caller) -> None:
    alice.sql(
        "CREATE TABLE t (id int); CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_notify('changed', NEW.id::text); RETURN NEW; END $$;"
        "CREATE TRIGGER tell AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION tell()"
    )
    assert alice.be("operator").sql("INSERT INTO t VALUES (1)").status == 200
