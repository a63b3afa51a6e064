"""A client's region: from a trusted edge's header, the network map or a GeoIP database."""

import ipaddress
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from edgecache.brain.conf.brain import Geography
from edgecache.brain.nodes.regions import Locator, RegionMap
from edgecache.http.scope import TrustedProxies

BARE = Geography(region="eu-central", coordinates={}, networks=(), header="", geoip=None)
MAPPED = replace(
    BARE,
    networks=(
        (ipaddress.ip_network("203.0.113.0/24"), "us-east"),
        (ipaddress.ip_network("203.0.0.0/16"), "us-west"),
        (ipaddress.ip_network("2001:db8::/32"), "ap-south"),
    ),
)
DECLARED = replace(MAPPED, header="x-region")
PROXIES = TrustedProxies((ipaddress.ip_network("10.0.0.0/8"),))


def locate(geography: Geography, client: str, peer: str = "", **headers: str) -> str:
    """Return the region of one client."""
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return Locator(geography, RegionMap({}), PROXIES).region_of(client, shown, peer=peer)


def test_an_unknown_client_is_in_the_brain_s_region() -> None:
    assert locate(BARE, "198.51.100.7") == "eu-central"
    assert locate(BARE, "unknown") == "eu-central"


@pytest.mark.parametrize(
    ("client", "region"),
    [
        ("203.0.113.9", "us-east"),
        ("203.0.77.9", "us-west"),
        ("::ffff:203.0.113.9", "us-east"),
        ("2001:db8::1", "ap-south"),
        ("2001:db9::1", "eu-central"),
    ],
)
def test_the_narrowest_network_is_used(client: str, region: str) -> None:
    assert locate(MAPPED, client) == region


def test_a_trusted_edge_may_set_the_client_s_region() -> None:
    assert locate(DECLARED, "203.0.113.9", peer="10.1.2.3", x_region="sa-east") == "sa-east"


def test_the_header_of_an_untrusted_client_is_ignored() -> None:
    assert locate(DECLARED, "203.0.113.9", x_region="sa-east") == "us-east"
    assert locate(DECLARED, "203.0.113.9", peer="11.1.2.3", x_region="sa-east") == "us-east"


@pytest.mark.parametrize("word", ["", "Not A Region!", "x" * 100])
def test_an_invalid_region_is_ignored(word: str) -> None:
    assert locate(DECLARED, "203.0.113.9", peer="10.1.2.3", x_region=word) == "us-east"


def test_a_geoip_database_locates_by_coordinates(tmp_path: Path) -> None:
    file = tmp_path / "city.mmdb"
    file.write_bytes(database({"location": {"latitude": 37.8, "longitude": -122.4}}))

    assert locate(replace(BARE, geoip=file), "198.51.100.7") == "us-west"


def test_a_geoip_country_database_locates_by_continent(tmp_path: Path) -> None:
    file = tmp_path / "country.mmdb"
    file.write_bytes(database({"continent": {"code": "OC"}}))

    assert locate(replace(BARE, geoip=file), "198.51.100.7") == "ap-southeast-2"


def test_the_network_map_precedes_the_geoip_database(tmp_path: Path) -> None:
    file = tmp_path / "country.mmdb"
    file.write_bytes(database({"continent": {"code": "OC"}}))

    assert locate(replace(MAPPED, geoip=file), "203.0.113.9") == "us-east"


def database(record: dict[str, object]) -> bytes:
    """Return a MaxMind database of one node: every IPv4 address has this record.

    Source: MaxMind DB File Format Specification 2.0.
    """
    node_count = 1
    # Both branches point past the tree: node_count + 16 is the start of the data section.
    pointer = node_count + 16
    tree = pointer.to_bytes(3, "big") * 2
    metadata = {
        "binary_format_major_version": 2,
        "binary_format_minor_version": 0,
        "build_epoch": 1,
        "database_type": "Test",
        "description": {"en": "test"},
        "ip_version": 4,
        "languages": ["en"],
        "node_count": node_count,
        "record_size": 24,
    }
    marker = b"\xab\xcd\xefMaxMind.com"
    return tree + bytes(16) + encoded(record) + marker + encoded(metadata)


def encoded(value: object) -> bytes:
    """Encode a value of the data section."""
    match value:
        case dict():
            body = b"".join(encoded(key) + encoded(each) for key, each in value.items())
            return bytes([7 << 5 | len(value)]) + body
        case str():
            return bytes([2 << 5 | len(value)]) + value.encode()
        case float():
            return bytes([3 << 5 | 8]) + struct.pack(">d", value)
        case int():
            return bytes([6 << 5 | 4]) + value.to_bytes(4, "big")
        case list():
            return bytes([len(value), 11 - 7]) + b"".join(encoded(each) for each in value)
    raise TypeError(value)
