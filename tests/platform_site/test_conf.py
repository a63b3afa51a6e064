"""Settings of the server: the public URL, the features, and how wrong values are refused."""

import psycopg
import pytest
from psycopg import sql

from common.conf import ServerSettings, control_database, default_public_url
from common.settings.env import Env, SettingError
from common.settings.table import load
from tests.edgecache.databases import new_database


def given(url: str, *hosts: str, is_production: bool = False) -> str:
    chosen = load(ServerSettings, Env({"ZPUBLIC_URL": url})).public_url
    return chosen or default_public_url(hosts, port=8123, is_production=is_production)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://app.example.com", "https://app.example.com"),
        ("https://App.Example.com:8443/", "https://app.example.com:8443"),
        ("http://localhost:9000", "http://localhost:9000"),
    ],
)
def test_it_is_an_origin(url: str, expected: str) -> None:
    assert given(url) == expected


def test_unset_it_is_this_machine_and_in_production_the_first_host() -> None:
    assert given("") == "http://localhost:8123"
    assert given("", "zonal.example.com", is_production=True) == "https://zonal.example.com"
    # A pattern is not a host.
    assert given("", ".example.com", "*", is_production=True) == "http://localhost:8123"


@pytest.mark.parametrize(
    "url",
    [
        "app.example.com",
        "ftp://app.example.com",
        "https://",
        "https://app.example.com/zonal",
        "https://app.example.com?x=1",
        "https://app.example.com#x",
        "https://user:secret@app.example.com",
        "https://app.example.com:port",
        "https://app.example.com evil",
        "https://äpp.example.com",
    ],
)
def test_any_other_value_is_refused_by_name(url: str) -> None:
    with pytest.raises(SettingError, match="ZPUBLIC_URL"):
        given(url)


def features(value: str = "") -> tuple[str, ...]:
    return load(ServerSettings, Env({"ZFEATURES": value})).features


def test_an_unknown_feature_is_refused() -> None:
    assert features() == ("cache",)
    assert features("none") == ()
    with pytest.raises(SettingError, match="ZFEATURES may hold cache"):
        features("cache,teleport")


def test_sessions_do_not_depend_on_the_server_s_defaults() -> None:
    with new_database() as url:
        with psycopg.connect(url, autocommit=True) as server:
            alter = sql.SQL("ALTER DATABASE {} SET {} TO {}")
            name = sql.Identifier(server.info.dbname)
            for setting, value in DEFAULTS.items():
                server.execute(alter.format(name, sql.Identifier(setting), sql.Literal(value)))
        options = control_database(url, 0)["OPTIONS"]["options"]
        with psycopg.connect(url, options=options) as session:
            shown = session.execute(
                "SELECT current_setting('default_transaction_isolation'),"
                " current_setting('DateStyle'), now()"
            ).fetchone()
    assert shown is not None
    assert shown[0] == "read committed"
    assert shown[1].startswith("ISO")


DEFAULTS = {"default_transaction_isolation": "serializable", "DateStyle": "SQL, DMY"}


def resolvers(value: str) -> tuple[tuple[str, int], ...]:
    return load(ServerSettings, Env({"ZDNS_RESOLVERS": value})).dns_resolvers


def test_resolvers_are_addresses() -> None:
    assert resolvers("192.0.2.53, 192.0.2.54:5353,[2001:db8::1]:53") == (
        ("192.0.2.53", 53),
        ("192.0.2.54", 5353),
        ("2001:db8::1", 53),
    )
    for value in ("dns.example.com", "192.0.2.53:port", "192.0.2.53:99999"):
        with pytest.raises(SettingError, match="ZDNS_RESOLVERS"):
            resolvers(value)
