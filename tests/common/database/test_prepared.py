"""Prepared queries: planned once per connection, and correct without preparation, too."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from django.db import InternalError, OperationalError, connection, transaction
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from common import problems
from common.database.prepared import PreparedQuery, parameter
from tests.cast import signed_in

PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'zonal\\_%%'"
ANYBODY = str(uuid.uuid4()).encode()


@pytest.fixture
def clean(transactional_db: None) -> Iterator[None]:
    """Yield outside of a transaction, without prepared statements before and after."""
    connection.close()
    yield
    connection.close()


def query() -> PreparedQuery:
    admins = User.objects.filter(pk=parameter(1, "uuid"), roles__contains=["admin"])
    return PreparedQuery(lambda: admins.values("email"))


def prepared() -> int:
    with connection.cursor() as cursor:
        cursor.execute(PREPARED)
        found: tuple[int] = cursor.fetchone()
    return found[0]


def key(user: User) -> bytes:
    return str(user.pk).encode()


def test_a_query_returns_the_row_or_none(clean: None, alice: User) -> None:
    emails = query()
    assert emails.row(key(alice)) == {"email": "alice@example.com"}
    assert emails.row(ANYBODY) is None


def test_a_connection_prepares_the_query_once(clean: None, alice: User) -> None:
    emails = query()
    for _ in range(3):
        emails.row(key(alice))
    assert prepared() == 1
    connection.close()
    assert emails.row(key(alice)) == {"email": "alice@example.com"}
    assert prepared() == 1


def test_each_run_counts_as_one_query(
    clean: None, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    emails = query()
    for _ in range(2):
        with django_assert_num_queries(1) as captured:
            emails.row(key(alice))
        assert "accounts_user" in captured[0]["sql"]


def test_a_query_sees_changes_of_its_own_transaction(clean: None, alice: User) -> None:
    with transaction.atomic():
        User.objects.filter(pk=alice.pk).update(email="moved@example.com")
        assert query().row(key(alice)) == {"email": "moved@example.com"}


def test_a_query_works_behind_a_pooler_that_loses_statements(clean: None, alice: User) -> None:
    emails = query()
    emails.row(key(alice))
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    assert emails.row(key(alice)) == {"email": "alice@example.com"}
    assert emails.row(ANYBODY) is None
    assert prepared() == 0


def test_a_query_works_behind_a_pooler_that_shares_statements(clean: None, alice: User) -> None:
    query().row(key(alice))
    # Another process of the platform, by way of the same connection of the server.
    other = query()
    assert other.row(key(alice)) == {"email": "alice@example.com"}
    assert other.row(ANYBODY) is None


def test_a_lost_connection_is_the_error_that_a_cursor_raises(clean: None, alice: User) -> None:
    emails = query()
    emails.row(key(alice))
    _end_backend()
    with pytest.raises(OperationalError) as caught:
        emails.row(key(alice))
    assert problems.is_database_unreachable(caught.value)


def test_a_request_succeeds_after_a_restart_of_the_database(clean: None, alice: User) -> None:
    caller = signed_in(alice)
    assert caller.get("/v1/whoami").status == 200
    _end_backend()
    assert caller.get("/v1/whoami").status == 200


def test_a_broken_transaction_refuses_the_query(clean: None, alice: User) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor, pytest.raises(Exception, match="nonesuch"):
            cursor.execute("SELECT nonesuch")
        with pytest.raises(InternalError, match="aborted"):
            query().row(key(alice))
        transaction.set_rollback(True)


def _end_backend() -> None:
    """End the backend of this connection, as a restart of the server does."""
    connection.ensure_connection()
    with psycopg.connect(connection.connection.info.dsn, password=_password()) as other:
        other.execute(
            "SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid]
        )


def _password() -> str:
    return str(connection.settings_dict["PASSWORD"])
