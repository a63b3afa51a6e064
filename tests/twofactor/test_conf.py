"""Origins of passkeys: as browsers send them, https except localhost, names only."""

import pytest

from common.settings.env import Env, SettingError
from twofactor import conf


def origins(value: str = "", *, is_production: bool = False, port: int = 8000) -> tuple[str, ...]:
    hosts = ["App.Example.com", "10.0.0.1", "[::1]", ".example.com", "*", "localhost"]
    env = Env({"ZWEBAUTHN_ORIGINS": value})
    return conf.read(env, hosts, port=port, is_production=is_production).webauthn_origins


def rp_id(value: str, *allowed: str) -> str:
    env = Env({"ZWEBAUTHN_ORIGINS": ",".join(allowed), "ZWEBAUTHN_RP_ID": value})
    return conf.read(env, (), port=8000, is_production=True).webauthn_rp_id


def test_the_default_origin_in_development_is_localhost() -> None:
    assert origins() == ("http://localhost:8000",)
    assert origins(port=9000) == ("http://localhost:9000", "http://localhost:8000")


def test_the_default_origins_in_production_are_the_allowed_hosts() -> None:
    assert origins(is_production=True) == ("https://app.example.com",)


def test_origins_are_kept_as_browsers_spell_them() -> None:
    given = "https://App.example.com:443/, http://localhost:3000 ,https://b.example:8443"
    assert origins(given) == (
        "https://app.example.com",
        "http://localhost:3000",
        "https://b.example:8443",
    )


@pytest.mark.parametrize(
    "value",
    [
        "app.example.com",
        "http://app.example.com",
        "https://app.example.com/path",
        "https://app.example.com?x",
        "https://user@app.example.com",
        "https://10.0.0.1",
        "https://[::1]",
        "https://*.example.com",
        "https://.example.com",
        "https://com",
        "https://münchen.example",
        "https://app.example.com:port",
        "https://[app",
        "https://",
        "ftp://app.example.com",
        "null",
    ],
)
def test_an_invalid_passkey_origin_prevents_the_start(value: str) -> None:
    with pytest.raises(SettingError, match="ZWEBAUTHN_ORIGINS must list origins"):
        origins(f"https://good.example.com,{value}")


def test_the_rp_id_is_the_host_of_an_origin_or_a_parent() -> None:
    assert rp_id("", "https://app.example.com") == ""
    assert rp_id("Example.com", "https://app.example.com") == "example.com"
    assert rp_id("app.example.com", "https://app.example.com") == "app.example.com"
    assert rp_id("localhost", "http://localhost:8000") == "localhost"


@pytest.mark.parametrize("value", ["com", "ple.com", "evil.example", "x.app.example.com"])
def test_an_unrelated_rp_id_prevents_the_start(value: str) -> None:
    with pytest.raises(SettingError, match="ZWEBAUTHN_RP_ID must be"):
        rp_id(value, "https://app.example.com")


def test_an_unknown_country_prevents_the_start() -> None:
    def read(value: str) -> frozenset[str]:
        env = Env({"ZSMS_COUNTRIES": value})
        return conf.read(env, (), port=8000, is_production=False).sms_countries

    assert read("") == frozenset()
    assert read("DE, AT") == {"DE", "AT"}
    with pytest.raises(SettingError, match="ZSMS_COUNTRIES must list ISO 3166 codes"):
        read("DE, UK")
