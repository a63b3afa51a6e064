"""The cache's settings: defaults, messages for wrong values, and hidden secrets."""

import ipaddress
from pathlib import Path

import pytest

from common.settings.env import Env, SettingError
from edgecache import conf
from edgecache.brain.conf import brain as brain_conf
from edgecache.brain.conf.brain import BrainSettings
from edgecache.conf import CacheSettings

SECRET = "a secret of more than thirty-two characters"


def brain(**given: str) -> BrainSettings:
    """Read the brain's settings."""
    return brain_conf.read(
        Env(given),
        data_dir=Path("/data"),
        database_url="postgresql://user:word@host/zonal",
        is_production=False,
    )


def client(**given: str) -> CacheSettings:
    """Read the platform's settings of the cache."""
    return conf.read(Env(given), brain(**given))


def test_defaults_match_the_published_interface() -> None:
    made = client()
    assert made.is_enabled
    assert made.brain_url == "http://127.0.0.1:8081"
    assert made.s3_url == "http://127.0.0.1:9000"
    assert (made.timeout_s, made.metrics_interval_s, made.secret) == (10, 30, "")
    found = brain()
    assert (found.internal.port, found.s3.port, found.workers.port) == (
        8081,
        9000,
        8083,
    )
    assert {found.internal.address, found.s3.address, found.workers.address} == {"127.0.0.1"}
    assert (found.replicas, found.heartbeat_s) == (2, 10)
    assert found.database_url == "postgresql://user:word@host/zonal"
    assert found.data_dir == Path("/data/brain")
    assert found.workers_url == "http://127.0.0.1:8083"


def test_urls_are_derived_from_the_ports() -> None:
    made = client(ZBRAIN_PORT="18081", ZBRAIN_S3_PORT="19000")
    assert made.brain_url == "http://127.0.0.1:18081"
    assert made.s3_url == "http://127.0.0.1:19000"
    assert brain(ZBRAIN_WORKER_PORT="18083").workers_url == "http://127.0.0.1:18083"


@pytest.mark.parametrize(
    ("given", "address"),
    [("18083", "127.0.0.1"), ("192.0.2.7:18083", "192.0.2.7"), ("[::]:18083", "::")],
)
def test_a_port_may_have_an_address(given: str, address: str) -> None:
    workers = brain(ZBRAIN_WORKER_PORT=given).workers
    assert (workers.address, workers.port) == (address, 18083)


def test_the_object_api_has_the_names_of_its_settings_and_localhost() -> None:
    assert brain().s3_domains == ("localhost",)
    assert brain(ZCACHE_BRAIN_S3_URL="http://192.0.2.1:9000").s3_domains == ("localhost",)
    given = {"ZBRAIN_S3_DOMAINS": "S3.example.com., brain"}
    named = brain(**given, ZCACHE_BRAIN_S3_URL="https://Objects.example.com")
    assert named.s3_domains == ("s3.example.com", "brain", "objects.example.com", "localhost")
    assert client(ZCACHE_BRAIN_S3_URL="https://a.example/").s3_url == "https://a.example"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ZBRAIN_S3_DOMAINS", "https://s3.example.com"),
        ("ZBRAIN_S3_DOMAINS", "*.s3.example.com"),
        ("ZBRAIN_S3_DOMAINS", "s3.example.com:9000"),
        ("ZCACHE_BRAIN_S3_URL", "http://[::1"),
    ],
)
def test_a_name_of_the_object_api_that_no_host_has_is_refused(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=name):
        brain(**{name: text})


@pytest.mark.parametrize("name", ["ZCACHE_BRAIN_SECRET", "BRAIN_SECRET"])
def test_the_secret_may_be_in_either_of_two_variables(name: str) -> None:
    assert client(**{name: SECRET}).secret == SECRET


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(SettingError, match="at least 32 characters"):
        client(BRAIN_SECRET="short")


def test_a_separate_database_is_used() -> None:
    url = "postgresql://brain@host/brain"
    assert brain(ZBRAIN_DATABASE_URL=url).database_url == url


def test_printed_settings_contain_no_secret() -> None:
    shown = repr(brain()) + repr(client(BRAIN_SECRET=SECRET))
    assert SECRET not in shown
    assert "word" not in shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ZBRAIN_PORT", "0"),
        ("ZBRAIN_S3_PORT", "99999"),
        ("ZBRAIN_WORKER_PORT", "eighty"),
        ("ZBRAIN_PORT", "localhost:8081"),
        ("ZBRAIN_PORT", ":8081:"),
        ("ZBRAIN_PORT", "::1:8081x"),
        ("ZBRAIN_WORKER_URL", "brain:8083"),
        ("ZBRAIN_WORKER_URL", "http://user@brain:8083"),
        ("ZBRAIN_DATABASE_URL", "mysql://host/brain"),
        ("ZCACHE_GEOIP", "/nowhere.mmdb"),
        ("ZCACHE_REGION", "EU Central"),
        ("ZCACHE_REGIONS", "eu-home"),
        ("ZCACHE_REGIONS", "eu-home=48.1"),
        ("ZCACHE_NETWORKS", "203.0.113.0/24"),
        ("ZCACHE_NETWORKS", "203.0.113.7/24=us-east"),
        ("ZCACHE_NETWORKS", "nowhere=us-east"),
        ("ZCACHE_REPLICAS", "0"),
        ("ZCACHE_HEARTBEAT", "0"),
    ],
)
def test_a_wrong_value_is_refused_with_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        brain(**{name: value})


def test_a_certificate_requires_its_key(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.touch()
    with pytest.raises(SettingError, match="ZBRAIN_TLS_KEY is missing"):
        brain(ZBRAIN_TLS_CERT=str(file))
    with pytest.raises(SettingError, match="ZBRAIN_TLS_CERT names a file that does not exist"):
        brain(ZBRAIN_TLS_CERT="/nowhere.pem", ZBRAIN_TLS_KEY=str(file))
    both = brain(ZBRAIN_TLS_CERT=str(file), ZBRAIN_TLS_KEY=str(file))
    assert both.workers_url == "https://127.0.0.1:8083"


def test_the_network_map_lists_the_narrowest_network_first() -> None:
    networks = brain(
        ZCACHE_NETWORKS="10.0.0.0/8=eu-west, 10.1.0.0/16=eu-north, 2001:db8::/32=ap-south"
    ).geography.networks
    assert networks[-1] == (ipaddress.ip_network("10.0.0.0/8"), "eu-west")
    assert [network.prefixlen for network, _ in networks] == [32, 16, 8]


def test_configured_regions_have_coordinates() -> None:
    geography = brain(ZCACHE_REGIONS="eu-home=48.1:11.6,moon=-0.67:23.47").geography
    assert geography.coordinates == {"eu-home": (48.1, 11.6), "moon": (-0.67, 23.47)}
