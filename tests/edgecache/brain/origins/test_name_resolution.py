"""Names of origins that cannot be resolved, or hang, do not delay others."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from edgecache.brain.core.errors import OriginFailed, OriginForbidden, OriginTimeout
from edgecache.brain.origins.guard import LOOK_UPS, LOOK_UPS_OF_ONE, RESOLVE_TIMEOUT_S, Guard
from tests.edgecache.brain.brains import until


@contextlib.contextmanager
def hanging(monkeypatch: pytest.MonkeyPatch, *, limit_s: float = 0.5) -> Iterator[list[str]]:
    """Make the resolver hang for some names during the block; yield the names it got."""
    asked: list[str] = []
    over, resolve = threading.Event(), socket.getaddrinfo

    def hang(host: str, *args: Any, **options: Any) -> list[Any]:
        if host.startswith("slow"):
            asked.append(host)
            assert over.wait(20)
            raise socket.gaierror
        if host.startswith("quick"):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))]
        return resolve(host, *args, **options)

    monkeypatch.setattr("edgecache.brain.origins.guard.RESOLVE_TIMEOUT_S", limit_s)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        yield asked
    finally:
        over.set()
        monkeypatch.setattr(socket, "getaddrinfo", resolve)


async def test_a_name_without_an_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OriginFailed, match="resolved"):
        await Guard(allows_private=False).resolve("nowhere.invalid", 443, owner=1)
    with pytest.raises(OriginFailed, match="resolved"):
        await Guard(allows_private=False).resolve("a" * 300, 443, owner=1)


async def test_a_resolver_that_hangs_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    with hanging(monkeypatch), pytest.raises(OriginTimeout):
        await Guard(allows_private=False).resolve("slow.example", 443, owner=1)


async def test_hanging_names_do_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(allows_private=False)
    with hanging(monkeypatch) as asked:
        many = [guard.resolve("slow.example", 443, owner=1) for _ in range(100)]
        outcomes = await asyncio.gather(*many, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {OriginTimeout}

        assert await guard.resolve("quick.example", 443, owner=1) == ["8.8.8.8"]
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(int) == 0
        assert asked == ["slow.example"]


async def test_the_number_of_hanging_names_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(allows_private=False)
    with hanging(monkeypatch) as asked:
        many = [
            guard.resolve(f"slow{number}.example", 443, owner=number)
            for number in range(2 * LOOK_UPS)
        ]
        outcomes = await asyncio.gather(*many, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {OriginTimeout}
        assert guard._running == LOOK_UPS
        await until(lambda: len(asked) == LOOK_UPS)

    await until(lambda: not guard._running)
    with pytest.raises(OriginForbidden):
        await guard.resolve("localhost", 443, owner=1)


async def test_hanging_names_of_one_organization_leave_lookups_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard = Guard(allows_private=False)
    with hanging(monkeypatch) as asked:
        many = [guard.resolve(f"slow{number}.example", 443, owner=1) for number in range(LOOK_UPS)]
        outcomes = await asyncio.gather(*many, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {OriginTimeout}
        await until(lambda: len(asked) == guard._running)
        assert len(asked) == LOOK_UPS_OF_ONE
        with pytest.raises(OriginTimeout):
            await guard.resolve("quick.example", 443, owner=1)

        assert await guard.resolve("quick.example", 443, owner=2) == ["8.8.8.8"]
        # An invalid name does not use up a lookup.
        assert await guard.resolve("2a00::1", 443, owner=1) == ["2a00::1"]

    await until(lambda: not guard._running)
    with pytest.raises(OriginForbidden):
        await guard.resolve("localhost", 443, owner=1)


async def test_hanging_names_of_many_organizations_leave_lookups_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard = Guard(allows_private=False)
    with hanging(monkeypatch) as asked:
        many = [
            guard.resolve(f"slow{number}.{owner}.example", 443, owner=owner)
            for owner in range(20)
            for number in range(LOOK_UPS_OF_ONE)
        ]
        await asyncio.gather(*many, return_exceptions=True)
        await until(lambda: len(asked) == guard._running)

        assert await guard.resolve("quick.example", 443, owner=99) == ["8.8.8.8"]


async def test_lookups_over_an_organization_s_limit_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard = Guard(allows_private=False)
    with hanging(monkeypatch, limit_s=RESOLVE_TIMEOUT_S):
        many = [
            guard.resolve(f"quick{number // 2}.example", 443, owner=1) for number in range(LOOK_UPS)
        ]
        assert await asyncio.gather(*many) == [["8.8.8.8"]] * len(many)
    assert not guard._running


ENDS_WHILE_A_NAME_HANGS = """
import asyncio, contextlib, socket, time
from edgecache.brain.origins import guard
from edgecache.brain.core.errors import OriginTimeout

async def main():
    with contextlib.suppress(OriginTimeout):
        await guard.Guard(allows_private=False).resolve("slow.example", 443, owner=1)
        raise SystemExit("it was resolved")

guard.RESOLVE_TIMEOUT_S = 0.2
socket.getaddrinfo = lambda *_, **__: time.sleep(60)
asyncio.run(main())
"""


def test_a_hanging_name_does_not_delay_the_exit_of_the_process() -> None:
    subprocess.run([sys.executable, "-c", ENDS_WHILE_A_NAME_HANGS], check=True, timeout=30)
