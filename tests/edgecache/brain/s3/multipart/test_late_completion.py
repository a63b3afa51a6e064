"""A completion that takes long: the response begins early and ends with the result."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import PreconditionFailed, StorageFull, UploadMissing
from edgecache.brain.core.values import ObjectVersion
from edgecache.brain.s3.multipart import complete
from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope, TrustedProxies
from tests.edgecache.http.support import ask, head, run, serving

FOUND = ObjectVersion(
    1,
    "k",
    "",
    1,
    bytes(32),
    1,
    "e-1",
    "",
    {},
    {},
    {},
    (1,),
    datetime.now(UTC),
    {},
    datetime.now(UTC),
)


def answered(ending: Callable[[], ObjectVersion], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return the whole response of a completion with this result."""
    monkeypatch.setattr(complete, "RESPONSE_AFTER_S", 0.01)

    async def main() -> bytes:
        go_on = asyncio.Event()

        async def work() -> ObjectVersion:
            await go_on.wait()
            return ending()

        async def app(_scope: HttpScope, exchange: Exchange) -> None:
            request = SimpleNamespace(
                request_id="R",
                bucket="b",
                key="k",
                host="h",
                is_host_style=False,
                headers={"if-none-match": "*"},
                query=lambda _name: "U",
            )
            dependencies = SimpleNamespace(proxies=TrustedProxies())
            call: Any = SimpleNamespace(
                request=request, exchange=exchange, dependencies=dependencies
            )
            asyncio.get_running_loop().call_later(0.1, go_on.set)
            await complete._respond_late(call, asyncio.create_task(work()))

        async with serving(app) as port:
            return await ask(port, head("POST /b/k HTTP/1.1"))

    answer: bytes = run(main())
    return answer


def test_a_late_completion_begins_early_and_ends_with_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = answered(lambda: FOUND, monkeypatch)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"<?xml") == 1
    assert b"1\r\n \r\n1\r\n \r\n" in answer
    assert b"<CompleteMultipartUploadResult" in answer
    assert answer.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (S3Error("InvalidPart", extra={"PartNumber": "1"}), b"<PartNumber>1</PartNumber>"),
        (StorageFull(), b"<Code>StorageFull</Code>"),
        (PreconditionFailed(), b"<Condition>If-None-Match</Condition>"),
        (UploadMissing(), b"<UploadId>U</UploadId>"),
    ],
)
def test_a_late_error_is_in_the_body(
    error: Exception, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> ObjectVersion:
        raise error

    answer = answered(fail, monkeypatch)
    assert text in answer[answer.index(b"<Error><Code>") :]
