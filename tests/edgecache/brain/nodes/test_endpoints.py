"""Node endpoints: the allowed addresses and their normal form."""

import pytest

from edgecache.brain.core.errors import Invalid
from edgecache.brain.nodes.endpoints import is_proof, is_public_host, new_nonce, normalize
from edgecache.protocol.credentials import NONCE


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("http://Cache.Example.com:9100", "http://cache.example.com:9100"),
        ("https://cache.example.com", "https://cache.example.com:443"),
        ("http://cache.example.com/", "http://cache.example.com:80"),
        ("http://[2001:db8::1]:9100", "http://[2001:db8::1]:9100"),
        ("http://127.0.0.1:9101", "http://127.0.0.1:9101"),
    ],
)
def test_an_endpoint_is_normalized(text: str, written: str) -> None:
    assert normalize(text, is_trusted=False, is_production=False) == written


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "cache.example.com:9100",
        "ftp://cache.example.com",
        "file:///etc/passwd",
        "http://",
        "http://user:word@cache.example.com",
        "http://cache.example.com/path",
        "http://cache.example.com/?query",
        "http://cache.example.com/#part",
        "http://cache.example.com:0",
        "http://cache.example.com:99999",
        "http://cache_example.com",
        "http://-cache.example.com",
        "http://[fe80::1%25eth0]:9100",
        "http://[::zz]:9100",
        "http://cache.example.com\r\nhost: evil",
        "http://" + "a" * 300 + ".com",
        "http://пример.рф",
    ],
)
def test_an_invalid_endpoint_is_refused(text: object) -> None:
    with pytest.raises(Invalid) as refused:
        normalize(text, is_trusted=True, is_production=False)
    assert refused.value.errors[0].field == "endpoint"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.0.0.7",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - it is refused
        "224.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[fe80::1]",
        "[fc00::1]",
        "[::ffff:10.0.0.7]",
        "[ff02::1]",
        "[64:ff9b::a00:7]",
        "[2002:a00:7::1]",
        "localhost",
        "brain.internal",
        "printer.local",
        "a.localhost.",
        "intranet",
        "2130706433",
        "0x7f000001",
        "127.1",
    ],
)
def test_in_production_a_foreign_node_needs_a_public_address(host: str) -> None:
    with pytest.raises(Invalid):
        normalize(f"https://{host}:9100", is_trusted=False, is_production=True)


def test_in_production_a_foreign_node_needs_https() -> None:
    with pytest.raises(Invalid, match=r"."):
        normalize("http://cache.example.com:9100", is_trusted=False, is_production=True)
    assert normalize("https://cache.example.com:9100", is_trusted=False, is_production=True)


def test_platform_nodes_may_have_private_addresses() -> None:
    assert normalize("http://10.0.0.7:9100", is_trusted=True, is_production=True)


def test_public_addresses_are_accepted() -> None:
    assert is_public_host("8.8.8.8")
    assert is_public_host("2606:4700::1111")
    assert is_public_host("cache.example.com")


def test_a_nonce_has_the_form_that_workers_accept() -> None:
    assert NONCE.fullmatch(new_nonce())
    assert new_nonce() != new_nonce()


@pytest.mark.parametrize(
    "answer", [b"", b"abc", b"[]", b'{"proof": 7}', b'{"proof": "abd"}', b'{"proof": "\xff"}']
)
def test_a_wrong_response_is_not_a_proof(answer: bytes) -> None:
    assert not is_proof(answer, "abc")


def test_the_correct_response_is_a_proof() -> None:
    assert is_proof(b'{"proof": "abc"}', "abc")
