"""Health: liveness, readiness, and metrics for permitted callers."""

from contextlib import suppress
from unittest import mock

import pytest
from django.db import OperationalError, connection
from pytest_django import Settings

from accounts import middleware
from common.version import VERSION
from common.web import server_end
from operations import health
from tests.cast import Caller
from tests.common.database.read_only import read_only_database


def test_healthz_does_not_use_the_database() -> None:
    assert Caller().get("/healthz").body == {"status": "ok"}


def test_healthz_does_not_look_at_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(middleware, "_resolve", lost)
    assert Caller("some.access.token").get("/v1/whoami").status == 503
    assert Caller("some.access.token").get("/healthz").status == 200


@pytest.mark.django_db
def test_readyz_lists_its_checks_and_stays_ready_without_the_cache() -> None:
    answer = Caller().get("/readyz")
    assert answer.status == 200
    assert answer.body == {
        "status": "ok",
        "version": VERSION,
        "checks": {
            "database": "ok",
            "migrations": "ok",
            "queue": "ok",
            "cache": "unavailable",
        },
    }


@pytest.mark.django_db
def test_readyz_is_503_without_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> dict[str, str]:
        raise OperationalError("to 10.0.0.7")

    monkeypatch.setattr(health, "_ask_database", lost)
    monkeypatch.setattr(health, "connections", {"default": mock.Mock()})
    answer = Caller().get("/readyz")
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "2"
    assert answer.body["checks"]["database"] == "unavailable"


@pytest.mark.django_db(transaction=True)
def test_readyz_is_503_while_the_database_takes_no_writes() -> None:
    with read_only_database():
        answer = Caller().get("/readyz")
    assert answer.status == 503
    assert answer.body["checks"]["database"] == "read_only"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "statement",
    ["SET default_transaction_read_only = on", "SELECT pg_terminate_backend(pg_backend_pid())"],
)
def test_readyz_asks_on_a_new_connection_if_an_old_one_is_of_no_use(statement: str) -> None:
    with suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute(statement)
    assert Caller().get("/readyz").status == 200


def test_readyz_is_503_as_soon_as_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """On connections that are kept alive; the database is not asked."""
    monkeypatch.setattr(server_end, "_flag", bytearray(1))
    server_end.begin()
    answer = Caller().get("/readyz")
    assert (answer.status, answer.body["checks"]) == (503, {"server": "ending"})
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.django_db
def test_metrics_are_for_loopback_and_the_token(settings: Settings) -> None:
    assert Caller().get("/metrics").status == 200
    assert b"zonal_request_seconds" in Caller().get("/metrics").raw.content
    assert Caller().get("/metrics", X_FORWARDED_FOR="6.6.6.6").status == 404
    settings.METRICS_TOKEN = "m" * 40
    assert Caller().get("/metrics").status == 404
    assert Caller("m" * 40).get("/metrics").status == 200
    assert Caller("x" * 40).get("/metrics").status == 404


def test_only_get_and_head() -> None:
    assert Caller().post("/healthz").status == 405
