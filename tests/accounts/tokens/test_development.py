"""Development tokens: all of one organization on a laptop, nothing in production."""

from dataclasses import replace

import pytest
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.tokens import development
from environments.models import Organization
from platform_site.startup import development_notice
from tests.cast import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(home: Organization, settings: Settings) -> str:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, dev_org_id=home.pk, dev_secret="d" * 48)
    return development.token_for(home.pk)


def test_a_development_token_is_an_admin_without_a_user(token: str, home: Organization) -> None:
    assert token.startswith("zonal_dev_")
    who = Caller(token).get("/v1/whoami").body
    assert (who["org_id"], who["roles"], who["amr"]) == (home.pk, ["admin"], ["dev"])
    assert who["user_id"] is who["email"] is who["session_id"] is who["auth_time"] is None
    assert who["environment"]["id"] == "live"


def test_it_acts_in_the_environment_that_is_named(token: str) -> None:
    who = Caller(token).get("/v1/whoami", X_ENVIRONMENT="sandbox").body
    assert who["environment"]["id"] == "sandbox"
    for name in ["nowhere", "nul\0"]:
        assert Caller(token).get("/v1/whoami", X_ENVIRONMENT=name).code == "token_invalid"


def test_it_costs_one_query(token: str, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(1):
        Caller(token).get("/v1/whoami")


def test_it_is_bound_to_organization_secret_and_service(
    token: str, charlie: object, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, dev_org_id=settings.ACCOUNTS.dev_org_id + 1)
    assert Caller(token).get("/v1/whoami").code == "token_invalid"
    settings.ACCOUNTS = replace(
        settings.ACCOUNTS, dev_org_id=settings.ACCOUNTS.dev_org_id - 1, dev_secret="e" * 48
    )
    assert Caller(token).get("/v1/whoami").code == "token_invalid"


def test_without_configuration_no_token_is_good(token: str, settings: Settings) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, dev_secret="")
    assert Caller(token).get("/v1/whoami").code == "token_invalid"
    assert Caller("zonal_dev_").get("/v1/whoami").code == "token_invalid"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PRODUCTION", "true"),
        ("NODE_ENV", "production"),
        ("DJANGO_ENV", "production"),
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ("DYNO", "web.1"),
        ("FLY_APP_NAME", "x"),
    ],
)
def test_it_is_refused_in_production(
    token: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    answer = Caller(token).get("/v1/whoami")
    assert (answer.status, answer.code) == (401, "dev_token_refused")
    assert development_notice() == ""


def test_it_is_printed_at_start(token: str) -> None:
    assert development_notice() == f"Development token: {token}"


def test_it_is_not_printed_without_configuration(settings: Settings, db: None) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, dev_org_id=0)
    assert development_notice() == ""
