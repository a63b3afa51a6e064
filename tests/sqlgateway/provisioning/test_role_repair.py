"""A tenant that shuts its own roles out, and the gateway that lets them in again."""

import pytest
import structlog

from accounts.models import AuditEvent
from sqlgateway.connection import cache
from tests.sqlgateway.support import Caller, as_provisioner

pytestmark = pytest.mark.provisions

# Inside DO the command's tag is not seen, so that only the next login finds out.
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


@pytest.mark.parametrize("text", LOCK_OUTS)
@pytest.mark.parametrize("is_hidden", [False, True])
def test_an_admin_that_locks_itself_out_is_let_in_again(
    world: Caller,
    text: str,
    is_hidden: bool,
) -> None:
    done = world.sql(HIDDEN.format(text) if is_hidden else text)
    assert done.status == 200, done.body
    cache.CACHE.clear()

    assert world.value("SELECT count(*) FROM t") == 1
    event = AuditEvent.objects.get(tag="sql:role:heal")
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
    cache.CACHE.clear()

    assert bob.value("SELECT count(*) FROM t") == 1


def test_a_password_that_the_tenant_knows_does_not_last(world: Caller) -> None:
    query = "SELECT rolpassword FROM pg_authid WHERE rolname = %s"
    user = [world.database.admin_role]
    before = as_provisioner(query, user)

    world.sql("ALTER ROLE CURRENT_USER PASSWORD 'known to the tenant'")

    healed = as_provisioner(query, user)
    assert healed != before
    assert world.sql("SELECT 1").status == 200
    assert as_provisioner(query, user) == healed


@pytest.mark.parametrize("role", ["reader", "operator", "admin"])
@pytest.mark.parametrize("end", ["", "; SELECT 1/0"])
def test_a_role_that_drops_its_rights_keeps_them_for_what_is_made_later(
    world: Caller, role: str, end: str
) -> None:
    bob = world.be(role)

    bob.sql(f"BEGIN READ WRITE; DROP OWNED BY CURRENT_USER; COMMIT{end}")

    cache.CACHE.clear()
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
        cache.CACHE.clear()

        assert bob.sql("SELECT * FROM t").body["sqlstate"] == "42501", text


def test_an_ordinary_lack_of_privileges_repairs_nothing(world: Caller) -> None:
    with structlog.testing.capture_logs() as logs:
        assert world.be("reader").sql("SELECT * FROM pg_authid").status == 403

    assert [log for log in logs if log["event"] == "sql_role_healed"] == []


def test_settings_of_the_role_in_its_database_are_forgotten(world: Caller) -> None:
    database = world.database.dbname
    text = f"ALTER ROLE CURRENT_USER IN DATABASE {database} SET local_preload_libraries = 'none'"
    assert world.sql(HIDDEN.format(text)).status == 200
    cache.CACHE.clear()

    assert world.value("SELECT count(*) FROM t") == 1


def test_no_password_is_in_any_log_or_error(world: Caller) -> None:
    secrets = list(world.database.passwords.values())
    with structlog.testing.capture_logs() as logs:
        world.sql(HIDDEN.format(LOCK_OUTS[0]))
        cache.CACHE.clear()
        answer = world.sql("SELECT 1")
    secrets += list(world.database.passwords.values())

    said = f"{logs} {answer}"
    assert not [secret for secret in secrets if secret in said]
    assert "known to the tenant" not in said
