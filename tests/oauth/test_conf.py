"""Providers: what each needs, where browsers may return to, and how wrong values are refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from common.permissions import ROLES
from common.settings.env import Env, SettingError
from common.settings.table import rows
from oauth import conf
from oauth.conf import OAuthSettings, read
from oauth.providers import conf as provider_conf
from oauth.providers.conf import RoleMapping
from tests.oauth.fake_providers import keys

PUBLIC = "https://zonal.example.com"
GOOGLE = {"GOOGLE_CLIENT_ID": "id", "GOOGLE_CLIENT_SECRET": "secret-0123456789"}
GITHUB = {"GITHUB_CLIENT_ID": "id", "GITHUB_CLIENT_SECRET": "secret-0123456789"}
DISCORD = {"DISCORD_CLIENT_ID": "id", "DISCORD_CLIENT_SECRET": "secret-0123456789"}
APPLE = {"APPLE_CLIENT_ID": "id", "APPLE_TEAM_ID": "TEAM", "APPLE_KEY_ID": "KEY"}


def given(public_url: str = PUBLIC, **variables: str) -> OAuthSettings:
    """Read the settings."""
    return read(Env(variables), public_url=public_url)


def refused(**variables: str) -> str:
    """Return the sentence that wrong settings are refused with."""
    with pytest.raises(SettingError) as caught:
        given(**variables)
    return str(caught.value)


def test_no_provider_is_offered_by_default() -> None:
    external = given()
    assert external.providers == {}
    assert external.redirects == ()
    assert external.redirect_base_url == PUBLIC


def test_a_provider_is_turned_on_by_its_client() -> None:
    external = given(**GOOGLE, **DISCORD)
    assert list(external.providers) == ["google", "discord"]
    assert external.providers["google"].client_id == "id"


@pytest.mark.parametrize("prefix", ["GOOGLE", "GITHUB", "DISCORD"])
def test_a_client_without_its_secret_is_refused_by_name(prefix: str) -> None:
    assert f"{prefix}_CLIENT_SECRET is needed" in refused(**{f"{prefix}_CLIENT_ID": "id"})


def test_apple_accepts_a_key_or_a_secret_made_with_it() -> None:
    key = keys.ec_pem("apple")
    provider = given(**APPLE, APPLE_PRIVATE_KEY=key).providers["apple"]
    assert (provider.team_id, provider.key_id) == ("TEAM", "KEY")
    written_out = given(**APPLE, APPLE_PRIVATE_KEY=key.strip().replace("\n", "\\n"))
    assert written_out.providers["apple"].private_key == key.strip()
    made = given(APPLE_CLIENT_ID="id", APPLE_CLIENT_SECRET="made-elsewhere-0123")
    assert made.providers["apple"].client_secret == "made-elsewhere-0123"


@pytest.mark.parametrize("missing", ["APPLE_TEAM_ID", "APPLE_KEY_ID", "APPLE_PRIVATE_KEY"])
def test_apple_reports_its_missing_settings(missing: str) -> None:
    variables = APPLE | {"APPLE_PRIVATE_KEY": keys.ec_pem("apple")}
    del variables[missing]
    assert f"{missing} is needed" in refused(**variables)


def test_a_key_that_is_none_is_refused() -> None:
    for key in ("-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----", "x" * 40):
        assert "P-256" in refused(**APPLE, APPLE_PRIVATE_KEY=key)


def test_secrets_are_in_no_text_of_the_settings() -> None:
    external = given(**GOOGLE, **APPLE, APPLE_PRIVATE_KEY=keys.ec_pem("apple"))
    assert "secret-0123456789" not in str(external)
    assert "PRIVATE KEY" not in str(external)


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text(keys.ec_pem("apple"))
    assert given(**APPLE, APPLE_PRIVATE_KEY_FILE=str(path)).providers["apple"].private_key


def test_mappings_are_read_in_their_order() -> None:
    roles = "acme=7:reader, Acme/Platform=7:admin,other=12:operator"
    assert given(**GITHUB, GITHUB_ROLES=roles).providers["github"].mappings == (
        RoleMapping("acme", 7, "reader"),
        RoleMapping("acme/platform", 7, "admin"),
        RoleMapping("other", 12, "operator"),
    )
    roles = "613425648685547541=7:reader,613425648685547541/936746847437983786=7:admin"
    assert len(given(**DISCORD, DISCORD_ROLES=roles).providers["discord"].mappings) == 2


@pytest.mark.parametrize(
    "value",
    [
        "acme",
        "acme=reader",
        "acme=7",
        "acme=7:owner",
        "acme=0:reader",
        "acme=-7:reader",
        "acme/=7:reader",
        "/team=7:reader",
        "acme/team/more=7:reader",
        "acme/../user=7:reader",
        "acme/..=7:reader",
        "ac me=7:reader",
        ", ".join(f"g{number}=7:reader" for number in range(51)),
    ],
)
def test_a_mapping_that_cannot_be_read_is_refused(value: str) -> None:
    assert "GITHUB_ROLES" in refused(**GITHUB, GITHUB_ROLES=value)


@pytest.mark.parametrize("value", ["acme=7:reader", "1=7:reader", "613425648685547541/x=7:reader"])
def test_discords_groups_are_ids(value: str) -> None:
    assert "DISCORD_ROLES" in refused(**DISCORD, DISCORD_ROLES=value)


def test_the_roles_are_those_of_the_permission_table() -> None:
    for role in ROLES:
        given(**GITHUB, GITHUB_ROLES=f"acme=7:{role}")


def test_domains_are_domains() -> None:
    external = given(**GOOGLE, GOOGLE_DOMAINS="Example.com, lakes.example")
    assert external.providers["google"].domains == ("example.com", "lakes.example")
    for value in ("example", "@example.com", "https://example.com", "*.example.com"):
        assert "GOOGLE_DOMAINS" in refused(**GOOGLE, GOOGLE_DOMAINS=value)


@pytest.mark.parametrize(
    "url",
    [
        "https://app.example.com/done",
        "https://app.example.com/done?kind=oauth",
        "http://localhost:3000/done",
        "http://127.0.0.1:3000/done",
        "http://[::1]:3000/done",
        "com.example.app:/done",
    ],
)
def test_a_redirect_is_kept_to_the_letter(url: str) -> None:
    assert given(ZOAUTH_REDIRECTS=f"{url} , https://b.example/x").redirects[0] == url


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example.com/done",
        "https://app.example.com/done#x",
        "https://user@app.example.com/done",
        "https:///done",
        "https://app.example.com:port/done",
        "javascript:alert(1)",
        "data:text/html;x",
        "/done",
        "app.example.com/done",
        "myapp://done",
        "https://münchen.example/done",
    ],
)
def test_a_redirect_that_leaks_codes_is_refused(url: str) -> None:
    assert "ZOAUTH_REDIRECTS" in refused(ZOAUTH_REDIRECTS=url)


@pytest.mark.parametrize(
    "url", ["http://zonal.example.com", "https://zonal.example.com/path", "https://u@z.example"]
)
def test_the_base_is_an_origin_over_https(url: str) -> None:
    assert "OAUTH_REDIRECT_BASE_URL" in refused(OAUTH_REDIRECT_BASE_URL=url)


def test_the_base_may_differ_from_where_people_are() -> None:
    external = given(OAUTH_REDIRECT_BASE_URL="https://login.example.com/")
    assert external.redirect_base_url == "https://login.example.com"


def test_a_service_reached_in_clear_offers_no_provider() -> None:
    assert given(public_url="http://intranet.example").redirect_base_url
    with pytest.raises(SettingError, match="OAUTH_REDIRECT_BASE_URL must be https"):
        given(public_url="http://intranet.example", **GOOGLE)
    assert given(public_url="http://localhost:8000", **GOOGLE).providers


def test_production_refuses_what_travels_in_clear(settings: Settings) -> None:
    external = given(
        public_url="http://localhost:8000", **GITHUB, GITHUB_BASE_URL="http://github.example"
    )
    settings.OAUTH = replace(
        settings.OAUTH, providers=external.providers, redirect_base_url=external.redirect_base_url
    )
    found = run_checks(tags=["security"], include_deployment_checks=True)
    assert {"zonal.E018", "zonal.E019"} <= {message.id for message in found}


def test_the_documents_name_each_setting() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/teams.md").read_text()
    for table in (*conf.TABLES, *provider_conf.TABLES):
        for row in rows(table).values():
            assert re.search(rf"\b{row.variable}\b", text), row.variable
