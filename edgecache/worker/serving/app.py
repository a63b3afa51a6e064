"""The worker's HTTP: one function that says who answers what (RSGI)."""

import asyncio
import json
import logging
from http import HTTPStatus
from typing import Any, Final

from edgecache.protocol.names import OBJECT_PREFIX, PROVE_PATH, parse_object_path
from edgecache.worker.node import Node
from edgecache.worker.serving import pages, reads
from edgecache.worker.serving.refusals import Refused, method_not_allowed, not_found

log = logging.getLogger(__name__)

READING: Final = ("GET", "HEAD")
FAULT: Final = Refused(
    HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "The worker failed; it is logged."
)


class App:
    """The RSGI application of a node."""

    def __init__(self, node: Node) -> None:
        """Serve this node."""
        self._node = node

    async def __call__(self, scope: Any, protocol: Any) -> None:
        """Answer one request; whatever goes wrong has an answer, too."""
        try:
            path, method = scope.path, scope.method
            if not path.startswith(OBJECT_PREFIX):
                _show(self._node, scope, protocol, path)
                return
            sha256 = _named(path)
            # Without a coroutine of its own: it is what is asked for most.
            if method in READING:
                reads.read(self._node, scope, protocol, sha256, is_head=method == "HEAD")
            else:
                await _change(self._node, scope, protocol, sha256)
        except Refused as refused:
            _refuse(scope, protocol, refused)
        except asyncio.CancelledError:
            raise
        except Exception:
            self._node.counters.add("faults")
            log.exception("request_failed", extra={"method": scope.method})
            _refuse(scope, protocol, FAULT)


def _named(path: str) -> bytes:
    sha256 = parse_object_path(path)
    if sha256 is None:
        raise not_found()
    return sha256


def _show(node: Node, scope: Any, protocol: Any, path: str) -> None:
    page = PAGES.get(path)
    if page is None:
        raise not_found()
    if scope.method not in READING:
        raise method_not_allowed("GET, HEAD")
    page(node, scope, protocol)


async def _change(node: Node, scope: Any, protocol: Any, sha256: bytes) -> None:
    # Time limits and the like want a task around them (``eager``).
    await asyncio.sleep(0)
    match scope.method:
        case "PUT":
            await writes.store(node, scope, protocol, sha256)
        case "DELETE":
            await writes.delete(node, scope, protocol, sha256)
        case _:
            raise method_not_allowed("GET, HEAD, PUT, DELETE")


def _refuse(scope: Any, protocol: Any, refused: Refused) -> None:
    body = json.dumps({"code": refused.code, "detail": refused.detail}).encode()
    headers = [
        *refused.headers,
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
    ]
    if scope.method == "HEAD":
        protocol.response_empty(refused.status, headers)
    else:
        protocol.response_bytes(refused.status, headers, body)


PAGES: Final = {
    "/healthz": pages.health,
    "/metrics": pages.metrics,
    PROVE_PATH: pages.prove,
}
