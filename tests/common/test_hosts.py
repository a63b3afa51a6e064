"""Which host names are answered, and the way to https behind a proxy."""

import ipaddress
import logging
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.cast import Caller
from tests.gate import production
from tests.settings_file import read_settings

pytestmark = pytest.mark.django_db
ROUTES = (
    "/",
    "/console/",
    "/admin/",
    "/admin/login/",
    "/v1/whoami",
    "/v1/members",
    "/v1/docs",
    "/v1/nothing",
    "/static/console/console.css",
    "/nothing",
)
HEALTH = ("/healthz", "/readyz", "/metrics")


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("host", ["scanner.test", "a b", "testserver.evil.test", "testserver@evil"])
def test_no_route_answers_at_another_host(
    path: str, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = Caller().get(path, HOST=host)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.body["detail"] == "This service has no such host name."
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_writes_are_refused_at_another_host_as_well() -> None:
    for path in ("/v1/sql", "/v1/auth/login", "/v1/auth/signup"):
        answer = Caller().post(path, {"query": "SELECT 1"}, HOST="scanner.test")
        assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize("path", HEALTH)
def test_balancers_ask_by_address(path: str) -> None:
    assert Caller().get(path, HOST="10.0.0.7:8000").status == 200


@pytest.fixture
def behind(settings: Settings) -> Settings:
    """Return the settings of a platform behind one proxy, which does TLS on a port of its own."""
    settings.SECURE_SSL_REDIRECT = True
    settings.TRUSTED_PROXIES = (ipaddress.ip_network("127.0.0.0/8"),)
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.PUBLIC_URL = "https://testserver:8443"
    return settings


@pytest.mark.parametrize("host", ["testserver", "testserver:8443"])
def test_http_is_redirected_to_the_public_port(behind: Settings, host: str) -> None:
    answer = Client().get("/console/?a=1", HTTP_HOST=host, HTTP_X_FORWARDED_PROTO="http")
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver:8443/console/?a=1")
    other = Client().get("/", HTTP_HOST="localhost:81", HTTP_X_FORWARDED_PROTO="http")
    assert other["Location"] == "https://localhost:81/"


def test_https_is_answered(behind: Settings) -> None:
    answer = Client().get("/console/", HTTP_X_FORWARDED_PROTO="https")
    assert answer.status_code == 200


def test_a_proxy_that_does_not_name_the_scheme_is_told_so(behind: Settings) -> None:
    answer = Client().get("/console/")
    assert answer.status_code == 400
    assert "must send X-Forwarded-Proto" in answer.json()["detail"]
    assert Client().get("/healthz").status_code == 200


def test_a_proxy_that_was_not_declared_is_named(behind: Settings) -> None:
    behind.TRUSTED_PROXIES = ()
    behind.SECURE_PROXY_SSL_HEADER = None
    answer = Client().get("/console/", HTTP_X_FORWARDED_PROTO="https")
    assert answer.status_code == 400
    assert "ZTRUSTED_PROXIES" in answer.json()["detail"]


def test_a_scheme_counts_only_of_a_trusted_proxy(behind: Settings) -> None:
    """The client would get cookies and pages for https over http."""
    answer = Client(REMOTE_ADDR="203.0.113.9").get("/console/", HTTP_X_FORWARDED_PROTO="https")
    assert answer.status_code == 400
    assert "ZTRUSTED_PROXIES" in answer.json()["detail"]
    answer = Client(REMOTE_ADDR="203.0.113.9").get("/console/")
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver:8443/console/")


HSTS = "max-age=31536000"


@pytest.mark.parametrize(
    ("chosen", "header"),
    [
        ("", HSTS),
        ("host", HSTS),
        ("subdomains", f"{HSTS}; includeSubDomains"),
        ("preload", f"{HSTS}; includeSubDomains; preload"),
    ],
)
def test_hsts_binds_this_host_alone_unless_more_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, behind: Settings, chosen: str, header: str
) -> None:
    for name, value in (production() | {"ZHSTS": chosen}).items():
        monkeypatch.setenv(name, value)
    found: dict[str, Any] = read_settings()
    for name in ("SECONDS", "INCLUDE_SUBDOMAINS", "PRELOAD"):
        setattr(behind, f"SECURE_HSTS_{name}", found[f"SECURE_HSTS_{name}"])
    answer = Client().get("/console/", HTTP_X_FORWARDED_PROTO="https")
    assert answer["Strict-Transport-Security"] == header
