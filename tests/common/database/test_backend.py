"""Connections that ended, or whose server takes no writes, are not used again."""

import io
import json
import select
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import close_old_connections, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg_pool.base import AttemptWithBackoff

from accounts.models import User
from common import problems
from common.conf import control_database
from environments.models import Organization
from tests.cast import PASSWORD, Caller, member, signed_in
from tests.common.database.read_only import read_only_database
from tests.waiting import LIMIT_S

pytestmark = pytest.mark.django_db(transaction=True)

SIGN_UP = {"email": "dora@example.com", "password": PASSWORD}


def end(*backends: int) -> None:
    """End the server's sides of connections, as a restart does."""
    with psycopg.connect(**parameters()) as other:
        for backend in backends:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])


def parameters() -> dict[str, Any]:
    """Return how the test's database is reached."""
    found: dict[str, Any] = connection.get_connection_params()
    del found["cursor_factory"], found["context"]
    return found


def backend_of(database: Any) -> int:
    """Return the process id of a connection's server process."""
    database.ensure_connection()
    return int(database.connection.info.backend_pid)


def wait_for_end(database: Any) -> None:
    """Wait until the end of a connection has arrived."""
    assert select.select([database.connection], [], [], 10)[0]


@pytest.fixture
def alice(home: Organization) -> User:
    """Return the owner, who signs in by password."""
    return member(home, password=PASSWORD)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/auth/signup", SIGN_UP),
        ("/v1/auth/login", {"email": "alice@example.com", "password": PASSWORD}),
        ("/v1/auth/refresh", None),
        ("/v1/environments", {"name": "staging"}),
    ],
)
def test_a_write_is_503_while_the_database_takes_none(
    alice: User, path: str, body: dict[str, str] | None
) -> None:
    caller = signed_in(alice)
    # The first use of a token is a write.
    caller.get("/v1/whoami")
    with read_only_database():
        answer = caller.post(path, body or {"refresh_token": caller.refresh_token})
        assert (answer.status, answer.code) == (503, "database_unavailable")
        assert answer.headers["Retry-After"] == "2"
        # Reads go on.
        assert caller.get("/v1/whoami").status == 200
    assert caller.post(path, body or {"refresh_token": caller.refresh_token}).status < 300


def test_a_connection_that_refused_a_write_is_not_used_again(alice: User) -> None:
    """It is to a former leader; new connections are to the server that the name is now of."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    login = {"email": alice.email, "password": PASSWORD}
    assert Caller().post("/v1/auth/login", login).status == 503
    # As at the end of each request, which a test's client leaves out.
    close_old_connections()
    assert Caller().post("/v1/auth/login", login).status == 200


def test_a_connection_that_ended_is_noticed_before_it_is_used(home: Organization) -> None:
    end(backend_of(connection))
    wait_for_end(connection)
    close_old_connections()
    assert Organization.objects.filter(pk=home.pk).exists()


@contextmanager
def pooled(number: int) -> Iterator[list[BaseDatabaseWrapper]]:
    """Return threads' connections to the test's database that share a pool."""
    entry = control_database("postgresql://127.0.0.1/zonal", number)
    pool = entry["OPTIONS"]["pool"] | {"timeout": LIMIT_S}
    options = {**connection.settings_dict["OPTIONS"], "pool": pool}
    with ExitStack() as stack:
        made = []
        for _ in range(number):
            one: Any = connections["default"].copy(alias="pooled")
            one.settings_dict |= {"CONN_MAX_AGE": 0, "OPTIONS": options}
            stack.callback(one.close)
            made.append(one)
        stack.callback(made[0].close_pool)
        yield made


def test_a_pool_gives_no_connection_that_ended(home: Organization) -> None:
    with pooled(4) as threads:
        backends = [backend_of(thread) for thread in threads]
        held = [thread.connection for thread in threads]
        end(*backends)
        for thread, raw in zip(threads, held, strict=True):
            wait_for_end(thread)
            thread.close()
            assert raw.closed or select.select([raw], [], [], 10)[0]
        with ThreadPoolExecutor(4) as pool:
            for thread in threads:
                thread.inc_thread_sharing()
            assert set(backends).isdisjoint(pool.map(backend_of, threads))


def test_a_pool_does_not_keep_a_connection_that_refused_a_write(home: Organization) -> None:
    with pooled(1) as (thread,):
        refused = backend_of(thread)
        with thread.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
            with pytest.raises(Exception, match="read-only transaction") as caught:
                cursor.execute("DELETE FROM environments_organization")
        assert problems.is_database_unreachable(caught.value)
        thread.close()
        assert backend_of(thread) != refused


@pytest.mark.parametrize("size", [1, 4, 64])
def test_the_pauses_of_a_pool_are_shorter_than_five_seconds(size: int) -> None:
    limit_s = control_database("postgresql://127.0.0.1/zonal", size)["OPTIONS"]["pool"]
    attempt, now, pauses = AttemptWithBackoff(timeout=limit_s["reconnect_timeout"]), 0.0, []
    while not attempt.time_to_give_up(now):
        attempt.update_delay(now)
        now += attempt.delay
        pauses.append(attempt.delay)
    assert max(pauses) <= 5


def test_a_command_says_that_the_database_takes_no_writes(alice: User) -> None:
    out = io.StringIO()
    with read_only_database(), pytest.raises(CommandError) as caught:
        call_command("setroles", alice.email, "reader", "--json", stdout=out)
    assert caught.value.returncode == 3
    assert json.loads(out.getvalue())["error"]["code"] == "database_unavailable"


ENDS_AT_COMMIT = """
CREATE FUNCTION end_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER end_at_commit AFTER INSERT ON environments_organization
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_at_commit();
"""


def test_an_answer_that_is_lost_at_the_commit_is_said_to_be_unknown(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(ENDS_AT_COMMIT)
    try:
        answer = Caller().post("/v1/auth/signup", SIGN_UP)
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION end_at_commit CASCADE")
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert "whether the change was made is unknown" in answer.body["detail"]
    assert "Retry-After" not in answer.headers


@pytest.mark.parametrize(
    "sqlstate",
    ["25006", "53100", "53200", "53300", "57P01", "57P02", "57P03", "57P04", "57P05"],
)
def test_a_state_of_the_server_is_not_the_fault_of_a_statement(
    alice: User, monkeypatch: pytest.MonkeyPatch, sqlstate: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"DO $$ BEGIN RAISE SQLSTATE '{sqlstate}'; END $$")

    monkeypatch.setattr("accounts.views.effective", refused)
    answer = signed_in(alice).get("/v1/permissions/effective")
    assert (answer.status, answer.code) == (503, "database_unavailable")


def test_an_object_in_another_state_is_our_fault(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a sequence without a value in this session: the same statement fails again."""

    def refused(*_: object, **__: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY SEQUENCE unused; SELECT currval('unused')")

    monkeypatch.setattr("accounts.views.effective", refused)
    answer = signed_in(alice).get("/v1/permissions/effective")
    assert (answer.status, answer.code) == (500, "internal_error")
