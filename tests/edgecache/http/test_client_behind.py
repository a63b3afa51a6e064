"""The client's address behind trusted proxies."""

import ipaddress

import pytest

from edgecache.http.addresses import client_behind

TRUSTED = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "2001:db8:aa::/48")))


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ((), "10.0.0.1"),
        (("203.0.113.7",), "203.0.113.7"),
        # The client sent the first one itself.
        (("192.0.2.1, 203.0.113.7",), "203.0.113.7"),
        (("192.0.2.1", "203.0.113.7"), "203.0.113.7"),
        # Two of our own in a row.
        (("192.0.2.1, 203.0.113.7, 10.0.0.2",), "203.0.113.7"),
        (("203.0.113.7", "10.0.0.3,10.0.0.2"), "203.0.113.7"),
        (("10.0.0.3, 10.0.0.2",), "10.0.0.3"),
        (("203.0.113.7:4711",), "203.0.113.7"),
        (("[2001:db8::7]:4711",), "2001:db8::7"),
        (("[2001:db8::7]",), "2001:db8::7"),
        (("2001:db8::7, 2001:db8:aa::1",), "2001:db8::7"),
        (("::ffff:203.0.113.7",), "203.0.113.7"),
        # Text that is no address says nothing of the client: the last one known counts.
        (("203.0.113.7, unknown",), "10.0.0.1"),
        (("203.0.113.7, , 10.0.0.2",), "10.0.0.2"),
        (("203.0.113.7:x",), "10.0.0.1"),
        (("",), "10.0.0.1"),
        (("203.0.113.7" + ", 10.0.0.2" * 10_000,), "10.0.0.2"),
    ],
)
def test_the_rightmost_address_that_is_no_proxy_s_is_the_client_s(
    forwarded: tuple[str, ...], client: str
) -> None:
    assert client_behind("10.0.0.1", forwarded, TRUSTED) == client


@pytest.mark.parametrize("peer", ["192.0.2.9", "2001:db8:bb::1", "unknown"])
def test_the_header_of_an_untrusted_peer_never_counts(peer: str) -> None:
    assert client_behind(peer, ["203.0.113.7"], TRUSTED) == peer
    assert client_behind("10.0.0.1", ["203.0.113.7"], ()) == "10.0.0.1"
