"""``manage.py checkisolation`` on a server in use."""

import secrets
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.clusters import servers
from sqlgateway.databases import stock, tenant_databases
from sqlgateway.isolation import check
from sqlgateway.isolation.attacks import Attack, AttackStep
from sqlgateway.models import Database
from tests.commands import facts, help_of, refused
from tests.sqlgateway.support import as_provisioner

pytestmark = pytest.mark.slow

OPEN = Attack("x", "open", "admin", "A test.", True, (AttackStep("admin", "SELECT 1", ("42501",)),))
SHUT = Attack(
    "x", "shut", "admin", "A test.", True, (AttackStep("admin", "SET ROLE x", ("22023",)),)
)
LEFT = "SELECT datname FROM pg_database WHERE datname = ANY(%s)"
ROLES_LEFT = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"


@pytest.fixture(autouse=True)
def made(databases: None, monkeypatch: pytest.MonkeyPatch) -> list[Database]:
    """Return the databases that checks make; other processes' tests check the same server."""
    monkeypatch.setattr(check, "MARK", f"isolation check {secrets.token_hex(4)}")
    rows: list[Database] = []
    create = tenant_databases.create

    def note(database: Database) -> None:
        rows.append(database)
        create(database)

    monkeypatch.setattr(tenant_databases, "create", note)
    return rows


def _nothing_is_left_of(made: list[Database]) -> bool:
    names = [database.dbname for database in made]
    roles = [name for database in made for name in database.roles.values()]
    return as_provisioner(LEFT, [names]) == as_provisioner(ROLES_LEFT, [roles]) == []


@pytest.fixture
def few_attacks(monkeypatch: pytest.MonkeyPatch) -> list[Attack]:
    """Run these attacks only."""
    attacks = [SHUT]
    monkeypatch.setattr(check, "subjects", lambda: ["x"])
    monkeypatch.setattr(check, "load", lambda subject: attacks)
    return attacks


def test_a_safe_server_passes_and_nothing_stays(made: list[Database]) -> None:
    report = check.check(servers.default())

    # Debian's server lets anybody install a few more extensions; that is what it finds.
    found = [one for one in report.findings if not one["statement"].startswith("CREATE EXTENSION")]
    assert found == []
    assert report.attacks > 400
    assert len(made) == 2
    assert _nothing_is_left_of(made)


def test_the_superuser_may_have_any_name(
    made: list[Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"Admin-{secrets.token_hex(4)}"
    monkeypatch.setattr(check, "subjects", lambda: ["functions", "identity", "platform"])
    as_provisioner(f"CREATE ROLE \"{name}\" SUPERUSER LOGIN PASSWORD 'secret'")
    try:
        url = urlsplit(settings.SQL.cluster_url)
        own = url._replace(netloc=f"{name}:secret@{url.netloc.rpartition('@')[2]}").geturl()
        with override_settings(SQL=replace(settings.SQL, cluster_url=own)):
            report = check.check(servers.default())
        assert report.findings == []
    finally:
        servers.default()
        as_provisioner(f'REASSIGN OWNED BY "{name}" TO CURRENT_USER')
        as_provisioner(f'DROP ROLE "{name}"')


def test_an_attack_that_succeeds_is_reported_and_the_command_fails(
    few_attacks: list[Attack],
) -> None:
    assert facts("checkisolation")["clusters"][0]["findings"] == []
    few_attacks.append(OPEN)

    _, answer = refused("checkisolation", "default")

    assert answer["code"] == "isolation_not_confirmed"
    (finding,) = answer["clusters"][0]["findings"]
    assert (finding["statement"], finding["outcome"]) == ("SELECT 1", "ok")


def test_what_a_crashed_check_left_is_dropped(
    few_attacks: list[Attack], made: list[Database]
) -> None:
    left = stock.new_row(servers.default())
    tenant_databases.create(left)
    with servers.administer(servers.address_of(left.cluster)) as connection:
        check.mark(connection, left)

    facts("checkisolation")

    assert _nothing_is_left_of(made)


def test_two_checks_of_a_server_do_not_run_at_once(few_attacks: list[Attack]) -> None:
    address = servers.address_of(servers.default())
    with servers.administer(address) as connection:
        connection.execute(check.LOCK, [check.MARK])

        _, answer = refused("checkisolation")

    assert answer["code"] == "check_running"


def test_the_command_explains_itself() -> None:
    assert "hostile tenant" in help_of("checkisolation")
