"""A frozen control database: a request waits for it no longer than the documented time."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection
from pytest_django import Settings

from accounts.models import User
from common.conf import control_database
from common.database import request_deadline
from tests import cast

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_deadline, "LIMIT_S", 1.0)
    monkeypatch.setattr(request_deadline.REQUEST_DEADLINE.checks, "seconds", 0.1)


# Before the fixture shortens them.
WAIT_S = request_deadline.LIMIT_S + request_deadline.CHECK_EVERY_S


def test_a_frozen_database_is_a_503_within_the_documented_ten_seconds(settings: Settings) -> None:
    connect_timeout_s = settings.DATABASES["default"]["OPTIONS"]["connect_timeout"]
    assert WAIT_S + connect_timeout_s < 10
    pooled = control_database("postgresql://127.0.0.1/zonal", 4)["OPTIONS"]["pool"]
    assert WAIT_S + pooled["timeout"] < 10


@contextmanager
def frozen_backend() -> Iterator[int]:
    """Stop the server process of our connection."""
    connection.ensure_connection()
    backend = connection.connection.info.backend_pid
    os.kill(backend, signal.SIGSTOP)
    try:
        yield backend
    finally:
        os.kill(backend, signal.SIGCONT)
        connection.close()


def test_a_connection_that_does_not_answer_is_shut_down(transactional_db: None) -> None:
    with (
        frozen_backend(),
        pytest.raises(OperationalError),
        request_deadline.REQUEST_DEADLINE.enforced(),
    ):
        connection.cursor().execute("SELECT 1")


def test_a_request_continues_on_another_connection(transactional_db: None, alice: User) -> None:
    caller = cast.signed_in(alice)
    with frozen_backend() as backend:
        started = time.monotonic()
        answer = caller.get("/v1/whoami")
        assert answer.status == 200
        assert 0.8 < time.monotonic() - started < 10
        assert connection.connection.info.backend_pid != backend


def test_a_shorter_statement_is_left_alone(transactional_db: None) -> None:
    with request_deadline.REQUEST_DEADLINE.enforced(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.3)")
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_outside_of_a_request_a_statement_may_take_longer(transactional_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(2)")
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
