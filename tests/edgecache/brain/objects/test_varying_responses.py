"""Two brains ask an origin once for each variant of an unknown URL."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from edgecache.brain.cdn.urls import CacheUrl, CdnRequest
from edgecache.brain.http_caching.cache_keys import KeyPolicy, target_of
from edgecache.brain.objects import singleflight
from edgecache.brain.origins.http import HttpDriver
from tests.edgecache.brain.brains import Brain, read, settled, until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin
from tests.edgecache.brain.objects.plain_requests import looking_up

pytestmark = pytest.mark.slow

OPEN = KeyPolicy(frozenset())


class Clients:
    """A brain's clients, which request one URL."""

    def __init__(self, brain: Brain, cache_url: CacheUrl) -> None:
        self.brain, self.cache_url = brain, cache_url
        self.lookup = looking_up(brain)

    def ask(self, coding: str) -> "asyncio.Task[str]":
        """Send a request that accepts one coding."""
        return asyncio.create_task(self._get({"accept-encoding": coding}))

    async def wait_for_the_other(self) -> None:
        """Wait until the brain waits for another brain's fetch."""
        await until(lambda: self.waits_for_the_other)

    @property
    def waits_for_the_other(self) -> bool:
        """True while the brain waits for another brain's fetch."""
        return bool(self.brain.objects.singleflight._leases._waiting)

    async def _get(self, fields: Mapping[str, str]) -> str:
        result = await self.lookup.find(CdnRequest(self.cache_url, fields, OPEN))
        assert result.opened is not None
        return (await read(result.opened)).decode()


async def clients_of(brain: Brain, origin: HttpOrigin) -> Clients:
    """Return clients that request a URL of a new bucket."""
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    driver = await brain.origins.driver(bucket)
    assert isinstance(driver, HttpDriver)
    return Clients(brain, CacheUrl(bucket, target_of("k", "k", ""), "/p/docs/", driver))


class EncodingOrigin:
    """Responds in the coding that a client accepts, once ``go_on`` is set.

    slow: a coding with responses that wait for ``go_on_slow``, too.
    body: set for the body to follow.
    """

    def __init__(self, control: str = "max-age=600", vary: str = "Accept-Encoding") -> None:
        self.control, self.vary = control, vary
        self.slow = ""
        self.go_on, self.go_on_slow, self.body = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.body.set()
        self.accepted: list[str] = []

    async def __call__(self, asked: Asked) -> None:
        """Respond."""
        coding = asked.headers["accept-encoding"]
        self.accepted.append(coding)
        await self.go_on.wait()
        if coding == self.slow:
            await self.go_on_slow.wait()
        fields = [f"Content-Length: {len(coding)}", f"Cache-Control: {self.control}", 'ETag: "v"']
        if coding != "identity":
            fields.append(f"Content-Encoding: {coding}")
        asked.head("200 OK", *fields, f"Vary: {self.vary}")
        await asked.say(b"")
        await self.body.wait()
        await asked.say(coding.encode())


@pytest.fixture
async def both(
    brain: Brain, other: Brain, origin: HttpOrigin
) -> AsyncIterator[tuple[Clients, Clients]]:
    """Return the clients of two processes of one machine, which share their disk."""
    other.data_directory.root = brain.data_directory.root
    first = await clients_of(brain, origin)
    second = Clients(other, first.cache_url)
    yield first, second
    for each in (first, second):
        await each.lookup.stop()


async def ask_while_the_other_fetches(
    both: tuple[Clients, Clients], encoding: EncodingOrigin
) -> list["asyncio.Task[str]"]:
    """Have the first brain fetch a variant, and the second one wait for it."""
    first = both[0].ask("gzip")
    await until(lambda: encoding.accepted)
    second = both[1].ask("gzip")
    await both[1].wait_for_the_other()
    return [first, second]


@pytest.mark.parametrize("order", ["gzip br identity", "br identity gzip"])
async def test_each_variant_is_fetched_once(
    both: tuple[Clients, Clients], origin: HttpOrigin, order: str
) -> None:
    origin.handler = encoding = EncodingOrigin()
    wanted = ("gzip", "br", "identity", "gzip")
    asking = [both[0].ask(coding) for coding in wanted]
    await until(lambda: encoding.accepted)
    asking += [both[1].ask(coding) for coding in order.split()]
    await both[1].wait_for_the_other()
    encoding.go_on.set()

    assert await asyncio.gather(*asking) == [*wanted, *order.split()]
    assert sorted(encoding.accepted) == ["br", "gzip", "identity"]


async def test_a_variant_that_another_brain_is_fetching_is_waited_for(
    both: tuple[Clients, Clients], origin: HttpOrigin
) -> None:
    origin.handler = encoding = EncodingOrigin()
    encoding.slow = "br"
    asking = [both[0].ask("gzip")]
    await until(lambda: encoding.accepted)
    asking += [both[0].ask("br"), both[1].ask("br")]
    await both[1].wait_for_the_other()
    encoding.go_on.set()
    await until(lambda: "br" in encoding.accepted)
    await until(lambda: any(each.waits_for_the_other for each in both))
    encoding.go_on_slow.set()

    assert await asyncio.gather(*asking) == ["gzip", "br", "br"]
    assert sorted(encoding.accepted) == ["br", "gzip"]


async def test_a_response_that_another_brain_stored_a_moment_ago_is_found(
    both: tuple[Clients, Clients], origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.handler = encoding = EncodingOrigin()
    encoding.go_on.set()
    go_on = asyncio.Event()
    leases = both[1].brain.objects.singleflight._leases
    acquire = leases.acquire

    async def late(name: tuple[int, str, str]) -> object:
        await go_on.wait()
        return await acquire(name)

    # It has looked before the first brain stores, and asks for the lease afterwards.
    monkeypatch.setattr(leases, "acquire", late)
    asking = both[1].ask("gzip")
    await until(lambda: both[1].brain.objects.singleflight.running)
    assert await both[0].ask("gzip") == "gzip"
    await settled(both[0].brain)
    go_on.set()

    assert await asking == "gzip"
    assert encoding.accepted == ["gzip"]


async def test_a_response_that_is_stored_while_a_request_looks_is_found(
    brain: Brain, origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a brain without others, which takes no leases."""
    origin.handler = encoding = EncodingOrigin(vary="")
    encoding.go_on.set()
    encoding.body.clear()
    asking = await clients_of(brain, origin)
    first = asking.ask("identity")
    await until(lambda: encoding.accepted)
    look = brain.directory.vary_names
    looks, go_on = asyncio.Event(), asyncio.Event()

    async def late(bucket_id: int, key: str, query: str) -> tuple[str, ...]:
        looks.set()
        await go_on.wait()
        return await look(bucket_id, key, query)

    monkeypatch.setattr(brain.directory, "vary_names", late)
    second = asking.ask("identity")
    await looks.wait()
    encoding.body.set()
    assert await first == "identity"
    await settled(brain)
    go_on.set()

    assert await second == "identity"
    assert len(encoding.accepted) == 1
    await asking.lookup.stop()


@pytest.mark.parametrize("control", ["no-cache", "max-age=0, must-revalidate"])
async def test_what_must_be_revalidated_is_asked_for_again(
    both: tuple[Clients, Clients], origin: HttpOrigin, control: str
) -> None:
    origin.handler = encoding = EncodingOrigin(control)
    encoding.go_on.set()
    encoding.body.clear()
    asking = await ask_while_the_other_fetches(both, encoding)
    encoding.body.set()

    assert await asyncio.gather(*asking) == ["gzip", "gzip"]
    assert encoding.accepted == ["gzip", "gzip"]


async def test_a_brain_that_cannot_get_at_the_bytes_fetches_the_variant(
    both: tuple[Clients, Clients],
    origin: HttpOrigin,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(singleflight, "REPLICA_LIMIT_S", 0.0)
    both[1].brain.data_directory.root = tmp_path_factory.mktemp("elsewhere")
    origin.handler = encoding = EncodingOrigin()
    asking = await ask_while_the_other_fetches(both, encoding)
    encoding.go_on.set()

    assert await asyncio.gather(*asking) == ["gzip", "gzip"]
    assert encoding.accepted == ["gzip", "gzip"]
