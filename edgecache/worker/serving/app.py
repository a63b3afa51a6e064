"""The worker's HTTP application: which function answers a request, and how a refusal is written."""

import json
import logging
import time
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Final

from edgecache.http.exchange import ClientGone, Exchange
from edgecache.http.scope import HttpScope
from edgecache.protocol.batches import BATCH_PATH
from edgecache.protocol.names import OBJECT_PREFIX, PROVE_PATH, parse_object_path
from edgecache.worker.node import CacheWorker
from edgecache.worker.refusals import Refused, method_not_allowed, not_found
from edgecache.worker.serving import pages, reads, writes
from edgecache.worker.tracing import Finish

log = logging.getLogger(__name__)

READING: Final = ("GET", "HEAD")
FAULT: Final = Refused(
    HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "The worker failed; it is logged."
)


class App:
    def __init__(self, node: CacheWorker, *, traced: Finish | None = None) -> None:
        """Serve this node. traced: is called after each request, with the time of its begin."""
        self._node = node
        self._traced = traced

    def __call__(self, scope: HttpScope, exchange: Exchange) -> Awaitable[None] | None:
        """Answer one request; return an awaitable if that has to wait."""
        if self._traced is None:
            return self._answer(scope, exchange)
        return self._answer_traced(scope, exchange, self._traced)

    async def _answer_traced(self, scope: HttpScope, exchange: Exchange, traced: Finish) -> None:
        began_ns = time.time_ns()
        work = self._answer(scope, exchange)
        if work is not None:
            await work
        traced(scope, exchange, began_ns)

    def _answer(self, scope: HttpScope, exchange: Exchange) -> Awaitable[None] | None:
        try:
            work = self._begin(scope, exchange)
        except Refused as refused:
            _refuse(exchange, refused)
        except Exception as error:  # noqa: BLE001 - logged; the client gets a 500
            self._fail(scope, exchange, error)
        else:
            return None if work is None else self._finish(scope, exchange, work)
        return None

    def _begin(self, scope: HttpScope, exchange: Exchange) -> Awaitable[None] | None:
        path = scope.raw_path
        if path == BATCH_PATH:
            if scope.method != "POST":
                raise method_not_allowed("POST")
            return writes.store_batch(self._node, scope, exchange)
        if not path.startswith(OBJECT_PREFIX):
            _show(self._node, scope, exchange, path)
            return None
        sha256 = parse_object_path(path)
        if sha256 is None:
            raise not_found()
        match scope.method:
            case "GET" | "HEAD":
                return reads.read(self._node, scope, exchange, sha256)
            case "PUT":
                return writes.store(self._node, scope, exchange, sha256)
            case "DELETE":
                return writes.delete(self._node, scope, exchange, sha256)
        raise method_not_allowed("GET, HEAD, PUT, DELETE")

    async def _finish(self, scope: HttpScope, exchange: Exchange, work: Awaitable[None]) -> None:
        try:
            await work
        except ClientGone:
            raise
        except Refused as refused:
            _refuse(exchange, refused)
        except Exception as error:
            if exchange.is_answered:
                raise
            self._fail(scope, exchange, error)

    def _fail(self, scope: HttpScope, exchange: Exchange, error: Exception) -> None:
        self._node.counters.add("faults")
        log.error("request_failed", extra={"method": scope.method}, exc_info=error)
        _refuse(exchange, FAULT)


def _show(node: CacheWorker, scope: HttpScope, exchange: Exchange, path: str) -> None:
    page = PAGES.get(path)
    if page is None:
        raise not_found()
    if scope.method not in READING:
        raise method_not_allowed("GET, HEAD")
    page(node, scope, exchange)


def _refuse(exchange: Exchange, refused: Refused) -> None:
    body = json.dumps({"code": refused.code, "detail": refused.detail}).encode()
    headers = [
        *refused.headers,
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
    ]
    exchange.response_bytes(refused.status, headers, body)


PAGES: Final = {
    "/healthz": pages.health,
    "/metrics": pages.metrics,
    PROVE_PATH: pages.prove,
}
