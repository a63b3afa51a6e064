"""A tenant's origin cannot make the brain connect to where it should not."""

import asyncio
import ipaddress
import socket
from pathlib import Path
from typing import Any

import pytest

from edgecache.brain.core.errors import OriginFailed, OriginForbidden
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.origins.guard import Guard
from tests.edgecache.brain import certificates
from tests.edgecache.brain.brains import Brain, Rows, running
from tests.edgecache.brain.http_origin import Asked, HttpOrigin
from tests.edgecache.brain.origins.names import forbidding

FORBIDDEN = [
    "0.0.0.0",  # noqa: S104 - it is refused
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.9.9.9",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "5f00::1",
]
ALLOWED = ["8.8.8.8", "1.1.1.1", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "2a00::1"]


def test_only_public_addresses_are_accepted() -> None:
    guard = Guard(allows_private=False)
    accepted = [text for text in (*FORBIDDEN, *ALLOWED) if guard.allows(ipaddress.ip_address(text))]
    assert accepted == ALLOWED


def test_metadata_addresses_are_refused_even_in_development() -> None:
    for text in ("169.254.169.254", "fe80::1", "::ffff:169.254.169.254"):
        assert not Guard(allows_private=True).allows(ipaddress.ip_address(text)), text


def test_configured_networks_are_refused() -> None:
    guard = Guard(allows_private=True, refused=[ipaddress.ip_network("8.8.8.0/24")])

    assert not guard.allows(ipaddress.ip_address("8.8.8.8"))
    assert guard.allows(ipaddress.ip_address("8.8.9.8"))
    assert guard.allows(ipaddress.ip_address("127.0.0.1"))


LOOPBACK = [
    "127.0.0.1",
    "localhost",
    "0x7f.1",
    "2130706433",
    "017700000001",
    "127.1",
    "::1",
    "::ffff:127.0.0.1",
    "0:0:0:0:0:ffff:7f00:1",
]


async def test_every_spelling_of_loopback_is_refused() -> None:
    for host in LOOPBACK:
        with pytest.raises(OriginForbidden):
            await Guard(allows_private=False).resolve(host, 443, owner=1)


async def test_a_port_of_another_service_is_refused() -> None:
    for port in (22, 25, 53, 0, 1023):
        with pytest.raises(OriginForbidden):
            await Guard(allows_private=False).resolve("8.8.8.8", port, owner=1)


def answering(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Resolve names to these lists of addresses in turn; return the names that were asked for."""
    asked: list[str] = []
    left = list(answers)

    def getaddrinfo(host: str, port: int, *_args: object, **_options: object) -> list[Any]:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            asked.append(host)
            texts = left.pop(0) if len(left) > 1 else left[0]
        else:
            texts = [host]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in texts]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


async def test_one_private_address_among_others_refuses_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answering(monkeypatch, ["8.8.8.8", "10.0.0.1"])

    with pytest.raises(OriginForbidden):
        await Guard(allows_private=False).resolve("mixed.example", 443, owner=1)


async def test_a_name_is_resolved_once_and_that_address_is_connected_to(
    strict: Brain, origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second lookup returns our own address, which a second lookup would connect to.
    asked = answering(monkeypatch, ["192.0.2.7"], ["127.0.0.1"])
    dialled: list[str] = []

    async def create_connection(
        _loop: object, _protocol: object, host: str, *_: object, **_options: object
    ) -> None:
        dialled.append(host)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", create_connection)
    monkeypatch.setattr(Guard, "allows", lambda _self, address: str(address) == "192.0.2.7")
    bucket = await strict.origin_bucket("http", {"url": f"http://rebinding.example:{origin.port}"})

    # It failed and was retried when the name had our own address.
    with pytest.raises(OriginForbidden):
        await strict.objects.open(bucket, "k")

    assert dialled == ["192.0.2.7"]
    assert asked == ["rebinding.example"] * 2
    assert origin.asked == []


PRIVATE = [
    ("http", {"url": "http://127.0.0.1:{port}"}),
    ("http", {"url": "https://localhost:{port}"}),
    ("http", {"url": "http://[::ffff:127.0.0.1]:{port}"}),
    ("s3", {"bucket": "store", "region": "eu", "endpoint": "https://127.0.0.1:{port}"}),
    ("gcs", {"bucket": "store", "endpoint": "https://127.0.0.1:{port}"}),
]


async def private_buckets(brain: Brain, port: int) -> list[tuple[str, BucketInfo]]:
    """Return the kind and a bucket of each of those origins."""
    return [
        (
            kind,
            await brain.origin_bucket(
                kind,
                {name: value.format(port=port) for name, value in config.items()},
                name=f"docs{number}",
            ),
        )
        for number, (kind, config) in enumerate(PRIVATE)
    ]


async def test_no_kind_of_origin_reaches_a_private_address(strict: Brain) -> None:
    connected: list[object] = []
    server = await asyncio.start_server(lambda *pair: connected.append(pair), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for kind, bucket in await private_buckets(strict, port):
        for call in (strict.objects.open(bucket, "k"), strict.objects.head(bucket, "k")):
            with pytest.raises(OriginForbidden):
                await call
        if kind != "http":
            for call in (strict.objects.list(bucket), strict.put(bucket, "k", b"x")):  # type: ignore[assignment]  # another resolver
                with pytest.raises(OriginForbidden):
                    await call
    server.close()
    assert connected == []


async def test_lookups_are_counted_for_the_origin_s_organization(
    strict: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = forbidding(monkeypatch)
    for _, bucket in await private_buckets(strict, 8443):
        owners.clear()
        with pytest.raises(OriginForbidden):
            await strict.objects.open(bucket, "k")
        assert set(owners) == {bucket.tenant.organization_id}


async def test_a_redirect_to_a_private_address_is_not_followed(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with HttpOrigin() as inside, HttpOrigin(host="127.0.0.2") as outside:

        async def lead_inside(asked: Asked) -> None:
            target = f"Location: {inside.url}/secret"
            await asked.answer(b"", target, status="302 Found")

        inside.objects["/secret"] = b"secret"
        outside.handler = lead_inside
        # This address counts as public.
        monkeypatch.setattr(Guard, "allows", lambda _self, address: str(address) == "127.0.0.2")
        async with running(rows.url, tmp_path / "strict") as brain:
            bucket = await brain.origin_bucket("http", {"url": outside.url})
            with pytest.raises(OriginForbidden):
                await brain.objects.open(bucket, "k")
        assert len(outside.asked) == 1
        assert inside.asked == []


async def redirecting(origin: HttpOrigin, location: str, status: str = "302 Found") -> None:
    """Return a handler that redirects to another address."""

    async def lead(asked: Asked) -> None:
        if asked.path == "/target":
            await asked.answer(b"there")
        else:
            await asked.answer(b"", f"Location: {location}", status=status)

    origin.handler = lead


async def test_a_redirect_to_a_public_address_is_followed(brain: Brain, origin: HttpOrigin) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    for status in ("301 M", "302 F", "303 S", "307 T", "308 P"):
        await redirecting(origin, "/target", status)
        assert await brain.get(bucket, status) == b"there"


INVALID = [
    "/loop",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "",
    "http://[::1",
    "http://",
    "http://user:password@127.0.0.1/",
    "//",
    "http://127.0.0.1:99999/",
]


async def test_a_redirect_without_a_valid_location_is_an_error(
    brain: Brain, origin: HttpOrigin
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    for number, location in enumerate(INVALID):
        origin.asked.clear()
        await redirecting(origin, location)
        with pytest.raises(OriginFailed):
            await brain.objects.open(bucket, f"k{number}")
        assert len(origin.asked) <= 6


async def test_credentials_are_not_sent_to_another_site(brain: Brain, origin: HttpOrigin) -> None:
    async with HttpOrigin({"/target": b"there"}) as elsewhere:
        bucket = await brain.origin_bucket(
            "http", {"url": origin.url}, {"authorization": "Bearer secret"}
        )
        await redirecting(origin, f"{elsewhere.url}/target")

        assert await brain.get(bucket, "k") == b"there"

    assert origin.asked[0].headers["authorization"] == "Bearer secret"
    assert "authorization" not in elsewhere.asked[0].headers
    assert elsewhere.asked[0].headers["host"] == f"127.0.0.1:{elsewhere.port}"


async def test_a_redirect_from_https_to_http_is_refused(
    rows: Rows, tmp_path: Path, origin: HttpOrigin
) -> None:
    trust, tls = certificates.issue(tmp_path, "127.0.0.1")
    origin.objects["/target"] = b"plain"
    async with (
        HttpOrigin(tls=tls) as secure,
        running(rows.url, tmp_path / "brain", trust=trust) as brain,
    ):
        secure.objects["/ok"] = b"over tls"
        bucket = await brain.origin_bucket("http", {"url": secure.url})
        assert await brain.get(bucket, "ok") == b"over tls"
        await redirecting(secure, f"{origin.url}/target")
        with pytest.raises(OriginFailed):
            await brain.objects.open(bucket, "k")
    assert origin.asked == []


async def test_a_certificate_for_another_name_is_refused(rows: Rows, tmp_path: Path) -> None:
    trust, tls = certificates.issue(tmp_path, "elsewhere.example")
    async with (
        HttpOrigin({"/k": b"x"}, tls=tls) as secure,
        running(rows.url, tmp_path / "brain", trust=trust) as brain,
    ):
        bucket = await brain.origin_bucket("http", {"url": secure.url})
        with pytest.raises(OriginFailed):
            await brain.objects.open(bucket, "k")
        assert secure.asked == []


async def test_a_request_to_an_origin_identifies_the_cache(
    brain: Brain, origin: HttpOrigin
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"x"
    await brain.get(bucket, "k")

    assert origin.asked[0].headers["cdn-loop"] == "zonal"
    assert origin.asked[0].headers["accept-encoding"] == "identity"
