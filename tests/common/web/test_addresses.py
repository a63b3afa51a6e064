"""The client address of a request: only trusted proxies can set it."""

import ipaddress

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from common.web.addresses import client_address, subscriber_network


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        ((), "6.6.6.6", "127.0.0.1"),
        (("10.0.0.0/8",), "6.6.6.6", "127.0.0.1"),
        (("127.0.0.1/32",), "6.6.6.6", "6.6.6.6"),
        (("127.0.0.1/32",), "1.1.1.1, 6.6.6.6", "6.6.6.6"),
        (("127.0.0.1/32", "10.0.0.0/8"), "1.1.1.1, 2.2.2.2, 10.3.3.3", "2.2.2.2"),
        (("127.0.0.1/32", "10.0.0.0/8"), "10.3.3.3", "10.3.3.3"),
        (("127.0.0.1/32",), "1.1.1.1, garbage", "127.0.0.1"),
        (("127.0.0.1/32",), "", "127.0.0.1"),
        (("127.0.0.1/32",), "::ffff:9.9.9.9", "9.9.9.9"),
        (("127.0.0.1/32",), "[2001:db8::7]:443", "2001:db8::7"),
        (("127.0.0.1/32",), ", ".join(["1.1.1.1"] * 40), "1.1.1.1"),
    ],
)
def test_forwarded_addresses_count_only_behind_trusted_proxies(
    settings: Settings, proxies: tuple[str, ...], forwarded: str, expected: str
) -> None:
    settings.TRUSTED_PROXIES = [ipaddress.ip_network(each) for each in proxies]
    request = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded})
    assert client_address(request) == expected


def test_a_socket_without_an_address_is_unknown() -> None:
    assert client_address(RequestFactory().get("/", REMOTE_ADDR="")) == "unknown"


def test_ipv6_addresses_count_by_their_64_prefix() -> None:
    assert (
        subscriber_network("2001:db8::1")
        == subscriber_network("2001:db8::ffff:1")
        == "2001:db8::/64"
    )
    assert subscriber_network("2001:db8:0:1::1") != subscriber_network("2001:db8::1")
    assert subscriber_network("9.9.9.9") == "9.9.9.9"
    assert subscriber_network("unknown") == "unknown"
