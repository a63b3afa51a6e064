"""A control database that is frozen: nobody in a request waits for it for long."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection

from accounts.models import User
from platform_site.lib import patience
from tests import cast


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LIMIT_S", 1.0)
    monkeypatch.setattr(patience, "LOOK_EVERY_S", 0.1)


@contextmanager
def frozen_backend() -> Iterator[int]:
    """Have the server's end of our connection stand still."""
    connection.ensure_connection()
    backend = connection.connection.info.backend_pid
    os.kill(backend, signal.SIGSTOP)
    try:
        yield backend
    finally:
        os.kill(backend, signal.SIGCONT)
        connection.close()


def test_a_connection_that_says_nothing_is_lost(transactional_db: None) -> None:
    with frozen_backend(), pytest.raises(OperationalError), patience.PATIENCE.watching():
        connection.cursor().execute("SELECT 1")


def test_a_request_goes_on_with_another_one(transactional_db: None, alice: User) -> None:
    caller = cast.signed_in(alice)
    with frozen_backend() as backend:
        begun = time.monotonic()
        answer = caller.get("/v1/whoami")
        assert answer.status == 200
        assert 0.8 < time.monotonic() - begun < 10
        assert connection.connection.info.backend_pid != backend


def test_a_statement_that_takes_less_is_left_alone(transactional_db: None) -> None:
    with patience.PATIENCE.watching(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.3)")
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_who_is_not_in_a_request_may_wait(transactional_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(2)")
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_a_look_that_fails_is_not_the_last_one(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = threading.Semaphore(0)

    def fail(_thread: int, _database: object) -> None:
        looked.release()
        raise RuntimeError("a look that fails")

    watcher = patience.Patience()
    monkeypatch.setattr(watcher, "_look", fail)
    with watcher.watching():
        assert looked.acquire(timeout=10)
        assert looked.acquire(timeout=10)
