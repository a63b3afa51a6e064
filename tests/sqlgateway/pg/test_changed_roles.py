"""A tenant that shuts its own roles out, and the gateway that lets them in again."""

import base64
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog
from django.db import connection

from audit.models import AuditEvent
from sqlgateway.pg import pool
from sqlgateway.pg.changed_roles import ROLE_CHECK
from tests.sqlgateway.support import Answer, Caller, as_provisioner, backends_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

# Inside DO no command tag shows it.
HIDDEN = "DO $do$ BEGIN EXECUTE $$ {} $$; END $do$"
LOCK_OUTS = [
    "ALTER ROLE CURRENT_USER PASSWORD 'known to the tenant'",
    "ALTER ROLE CURRENT_USER PASSWORD NULL",
    "ALTER ROLE CURRENT_USER SET local_preload_libraries = 'nonesuch'",
]


@pytest.fixture
def world(alice: Caller) -> Caller:
    """Return Alice with a table."""
    made = alice.sql("CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE SEQUENCE s")
    assert made.status == 200
    return alice


@pytest.mark.parametrize("is_checked", [False, True])
@pytest.mark.parametrize("text", LOCK_OUTS)
def test_an_admin_that_locks_itself_out_is_let_in_again(
    world: Caller, text: str, is_checked: bool
) -> None:
    done = world.sql(HIDDEN.format(text))
    assert done.status == 200, done.body
    if is_checked:
        ROLE_CHECK.run()
    pool.CONNECTION_POOL.clear()

    assert world.value("SELECT count(*) FROM t") == 1
    ROLE_CHECK.run()
    event = AuditEvent.objects.get(tag="sql:role:repair")
    assert (event.organization_id, event.environment_id) == (
        world.scope.organization_id,
        "live",
    )
    assert event.data == {"role": "admin"}


@pytest.mark.parametrize("text", LOCK_OUTS)
@pytest.mark.parametrize("role", ["reader", "operator"])
def test_a_lesser_role_cannot_lock_out_its_organization(
    world: Caller, text: str, role: str
) -> None:
    bob = world.be(role)
    done = bob.sql(f"BEGIN READ WRITE; {text}; COMMIT")
    assert done.status == 200, done.body
    pool.CONNECTION_POOL.clear()

    assert bob.value("SELECT count(*) FROM t") == 1


def test_a_password_that_the_tenant_knows_does_not_last(world: Caller) -> None:
    query = "SELECT rolpassword FROM pg_authid WHERE rolname = %s"
    user = [world.database.admin_role]
    before = as_provisioner(query, user)

    world.sql("ALTER ROLE CURRENT_USER PASSWORD 'known to the tenant'")
    assert as_provisioner(query, user) != before
    ROLE_CHECK.run()

    assert as_provisioner(query, user) == before
    assert world.sql("SELECT 1").status == 200


def test_a_verifier_of_many_iterations_does_not_occupy_the_gateway(world: Caller) -> None:
    """A client that logs in by password would compute them all, while it waits for no timeout."""
    key = base64.b64encode(bytes(32)).decode()
    verifier = f"SCRAM-SHA-256$300000:{key}${key}:{key}"
    bob = world.be("reader")
    done = bob.sql(f"BEGIN READ WRITE; ALTER ROLE CURRENT_USER PASSWORD '{verifier}'; COMMIT")
    assert done.status == 200, done.body
    pool.CONNECTION_POOL.clear()

    # The processor's time of this thread: other work on the machine does not count.
    started = time.thread_time()
    assert bob.value("SELECT count(*) FROM t") == 1

    assert time.thread_time() - started < 0.25


def test_a_reader_with_several_sessions_changes_nothing_for_others(committed: Caller) -> None:
    """Each session would be repaired by itself, and all but the first forgotten."""
    bob = committed.be("reader")
    kept = "restrict_nonsystem_relation_kind = 'view, foreign-table'"
    change = f"BEGIN READ WRITE; ALTER ROLE CURRENT_USER SET {kept}; SELECT pg_sleep(0.2); COMMIT"
    committed.sql("CREATE VIEW v AS SELECT 1 AS one")
    with ThreadPoolExecutor(3) as executor:
        answers = list(executor.map(lambda _: _in_thread(bob, change), range(3)))
    assert {answer.status for answer in answers} <= {200, 409}

    for _ in range(2):
        assert bob.value("SELECT one FROM v") == 1
        pool.CONNECTION_POOL.clear()


def test_readers_that_change_their_password_in_parallel_get_clear_answers(
    committed: Caller,
) -> None:
    bob = committed.be("reader")
    bob.value("SELECT 1")
    change = "BEGIN READ WRITE; ALTER ROLE CURRENT_USER PASSWORD '{}'; COMMIT"

    def attack(number: int) -> Answer:
        pool.CONNECTION_POOL.clear()
        text = change.format(number) if number % 4 else "SELECT 1"
        return _in_thread(bob, text)

    with ThreadPoolExecutor(4) as executor:
        answers = list(executor.map(attack, range(40)))

    for answer in answers:
        assert answer.status in {200, 409}, answer.body
        if answer.status == 409:
            assert answer.body["retryable"] is True
    assert [a.status for a in answers[::4]] == [200] * 10
    pool.CONNECTION_POOL.clear()
    assert bob.value("SELECT 1") == 1


def test_an_open_change_of_the_role_holds_up_no_other_reader(committed: Caller) -> None:
    bob = committed.be("reader")
    bob.value("SELECT 1")
    change = "BEGIN READ WRITE; ALTER ROLE CURRENT_USER PASSWORD 'x'; COMMIT"
    assert bob.sql(change).status == 200
    with ThreadPoolExecutor(1) as executor:
        held = executor.submit(
            _in_thread, bob, change.replace("COMMIT", "SELECT pg_sleep(20); COMMIT")
        )
        wait_until(lambda: any("pg_sleep" in query for _, _, query in backends_of(bob)))
        pool.CONNECTION_POOL.clear()

        assert bob.value("SELECT 1") == 1

        # The server ended it, so that the role could be restored.
        assert held.result(10).body["sqlstate"] == "57P01"


def _in_thread(someone: Caller, text: str) -> Answer:
    try:
        return someone.sql(text)
    finally:
        connection.close()


@pytest.mark.parametrize("role", ["reader", "operator", "admin"])
@pytest.mark.parametrize("end", ["", "; SELECT 1/0"])
def test_a_role_that_drops_its_rights_keeps_them_for_what_is_made_later(
    world: Caller, role: str, end: str
) -> None:
    bob = world.be(role)

    bob.sql(f"BEGIN READ WRITE; DROP OWNED BY CURRENT_USER; COMMIT{end}")

    ROLE_CHECK.run()
    pool.CONNECTION_POOL.clear()
    world.sql("CREATE SCHEMA z; CREATE TABLE z.later (id int); CREATE SEQUENCE z.s")
    for someone in (world, world.be("operator"), world.be("reader")):
        assert someone.value("SELECT count(*) FROM z.later") == 0
    operator = world.be("operator")
    assert operator.sql("INSERT INTO z.later VALUES (1)").status == 200
    assert operator.value("SELECT nextval('z.s')") == 1
    assert world.sql("DO $$ BEGIN PERFORM 1; END $$").status == 200


def test_role_repair_does_not_restore_what_an_admin_revoked(world: Caller) -> None:
    world.sql("REVOKE ALL ON t FROM PUBLIC")
    bob = world.be("reader")

    for text in (*LOCK_OUTS, "DROP OWNED BY CURRENT_USER"):
        bob.sql(f"BEGIN READ WRITE; {text}; COMMIT")
        ROLE_CHECK.run()
        pool.CONNECTION_POOL.clear()

        assert bob.sql("SELECT * FROM t").body["sqlstate"] == "42501", text


def test_role_repair_does_not_restore_defaults_that_an_admin_revoked(world: Caller) -> None:
    world.sql("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC")
    bob = world.be("reader")

    bob.sql("BEGIN READ WRITE; DROP OWNED BY CURRENT_USER; COMMIT")
    ROLE_CHECK.run()

    world.sql("CREATE TABLE later (id int)")
    assert bob.sql("SELECT * FROM later").body["sqlstate"] == "42501"


def test_an_ordinary_lack_of_privileges_repairs_nothing(world: Caller) -> None:
    with structlog.testing.capture_logs() as logs:
        assert world.be("reader").sql("SELECT * FROM pg_authid").status == 403
        ROLE_CHECK.run()

    assert [log for log in logs if log["event"] == "sql_role_repaired"] == []


def test_settings_of_the_role_in_its_database_are_forgotten(world: Caller) -> None:
    database = world.database.dbname
    text = f"ALTER ROLE CURRENT_USER IN DATABASE {database} SET local_preload_libraries = 'none'"
    assert world.sql(HIDDEN.format(text)).status == 200

    ROLE_CHECK.run()

    assert world.value("SELECT count(*) FROM t") == 1
    assert (
        as_provisioner(
            "SELECT FROM pg_db_role_setting WHERE setrole::regrole::text = %s AND setdatabase <> 0",
            [world.database.admin_role],
        )
        == []
    )


def test_no_password_is_in_any_log_or_error(world: Caller) -> None:
    secrets = list(world.database.passwords.values())
    with structlog.testing.capture_logs() as logs:
        world.sql(HIDDEN.format(LOCK_OUTS[0]))
        pool.CONNECTION_POOL.clear()
        answer = world.sql("SELECT 1")
    secrets += list(world.database.passwords.values())

    said = f"{logs} {answer}"
    assert not [secret for secret in secrets if secret in said]
    assert "known to the tenant" not in said
