"""The asynchronous client, which the synchronous one is written from."""

import asyncio
from dataclasses import replace

import pytest
from django.conf import settings

import zonal
from tests import cast
from tests.clients.conftest import Platform
from tests.clients.front import Front

pytestmark = pytest.mark.slow

EMAIL = "alice@example.com"


def test_it_does_what_the_synchronous_one_does(platform: Platform, front: Front) -> None:
    async def scenario() -> None:
        async with zonal.AsyncClient(front.url) as client:
            answer = await client.sign_in(EMAIL, cast.PASSWORD)
            assert answer.environment.id in {"live", "sandbox"}
            await client.switch("live")
            ids = [each.id async for each in client.environments.list()]
            assert ids[:2] == ["live", "sandbox"]
            front.refuse(503, "sql_busy", Retry_After="0")
            async with client.sql.transaction() as transaction:
                await transaction.query("CREATE TABLE asynchronous (n int)")
                await transaction.query("INSERT INTO asynchronous VALUES ($1)", [1])
            async with client.sql.stream("SELECT n FROM asynchronous") as rows:
                assert [row async for row in rows] == [{"n": 1}]
            assert rows.end is not None
            with pytest.raises(zonal.SqlError):
                await client.sql.query("SELECT 1/0")
            await client.sign_out()

    asyncio.run(scenario())


def test_an_expired_token_is_refreshed_once_for_all_tasks(platform: Platform, front: Front) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "ACCOUNTS", replace(settings.ACCOUNTS, access_ttl_s=-60))
        caller = cast.signed_in(platform.alice)
    pair = zonal.TokenPair(caller.access_token, caller.refresh_token, 0, 0)

    async def scenario() -> list[str | None]:
        async with zonal.AsyncClient(front.url, store=zonal.MemoryStore(pair)) as client:
            found = await asyncio.gather(*(client.whoami() for _ in range(8)))
            return [each.email for each in found]

    assert asyncio.run(scenario()) == [EMAIL] * 8
    assert front.seen.count(("POST", "/v1/auth/refresh")) == 1
