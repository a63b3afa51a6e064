"""Two brains ask an origin once for a URL, whatever its responses vary on."""

import asyncio
from collections.abc import Mapping

import pytest

from edgecache.brain.cdn.keys import KeyPolicy
from edgecache.brain.cdn.lookup import CdnRequest, Lookup
from edgecache.brain.cdn.urls import Place, target_of
from edgecache.brain.origins.http import HttpDriver
from edgecache.brain.values import BucketInfo
from tests.edgecache.brain.brains import Brain, read, until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin

pytestmark = pytest.mark.slow

OPEN = KeyPolicy(frozenset())


class Asking:
    """A brain's clients, who ask for one URL."""

    def __init__(self, brain: Brain, bucket: BucketInfo, driver: HttpDriver) -> None:
        self.lookup = Lookup(brain.objects, brain.directory)
        self._place = Place(bucket, target_of("k", "k", ""), "/p/docs/", driver)

    async def get(self, fields: Mapping[str, str]) -> tuple[bytes, str]:
        """Return a response's body and Cache-Status."""
        result = await self.lookup.find(CdnRequest(self._place, fields, OPEN))
        assert result.opened is not None
        return await read(result.opened), result.cache_status


async def test_a_url_whose_responses_vary_is_fetched_once_for_each_variant(
    brain: Brain, other: Brain, origin: HttpOrigin
) -> None:
    # A shared disk, as of two processes on one machine.
    other.staging.root = brain.staging.root
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    driver = await brain.origins.driver(bucket)
    assert isinstance(driver, HttpDriver)
    asking = [Asking(each, bucket, driver) for each in (brain, other)]
    go_on = asyncio.Event()

    async def respond(asked: Asked) -> None:
        await go_on.wait()
        accepted = asked.headers["accept-encoding"]
        coded = () if accepted == "identity" else (f"Content-Encoding: {accepted}",)
        always = ("Cache-Control: max-age=600", "Vary: Accept-Encoding")
        await asked.answer(accepted.encode(), *always, *coded)

    origin.handler = respond
    clients = [
        asyncio.create_task(each.get({"accept-encoding": coding}))
        for coding in ("gzip", "br", "gzip", "br", "identity")
        for each in asking
    ]
    await until(lambda: origin.asked and len(other.objects.singleflight.running) == 1)
    await until(lambda: len(brain.objects.singleflight.running) == 1)
    go_on.set()

    bodies = [body.decode() for body, _ in await asyncio.gather(*clients)]
    assert bodies == [coding for coding in ("gzip", "br", "gzip", "br", "identity") for _ in asking]
    sent = [asked.headers["accept-encoding"] for asked in origin.asked]
    assert sorted(sent) == ["br", "gzip", "identity"]
    for each in asking:
        await each.lookup.stop()
