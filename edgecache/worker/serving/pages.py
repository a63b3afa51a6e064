"""A worker's own pages: how it is, what it did, and that it knows its secret."""

import hmac
import json
from http import HTTPStatus
from urllib.parse import parse_qs

from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope
from edgecache.protocol.credentials import NONCE, authorization, proof, secret_hash
from edgecache.protocol.names import NONCE_PARAMETER
from edgecache.worker.node import CacheWorker, Status
from edgecache.worker.refusals import Refused


def health(node: CacheWorker, scope: HttpScope, exchange: Exchange) -> None:
    """Answer with the worker's state: 200 while it serves, even without the brain, or 503."""
    status = HTTPStatus.OK if node.status is Status.SERVING else HTTPStatus.SERVICE_UNAVAILABLE
    body = {"status": node.status, "problems": list(node.problems.now())}
    _send(exchange, status, json.dumps(body), "application/json")


def prove(node: CacheWorker, scope: HttpScope, exchange: Exchange) -> None:
    """Answer a nonce with what only the holder of the node's secret can. Raises Refused."""
    nonce = parse_qs(scope.query_string).get(NONCE_PARAMETER, [""])[0]
    if NONCE.fullmatch(nonce) is None:
        raise Refused(
            HTTPStatus.BAD_REQUEST, "nonce_malformed", "A nonce has 16 to 128 of A-Z a-z 0-9 _ -."
        )
    key = secret_hash(node.options.secret)
    body = {"proof": proof(key, node.options.node_id, nonce)}
    _send(exchange, HTTPStatus.OK, json.dumps(body), "application/json")


def metrics(node: CacheWorker, scope: HttpScope, exchange: Exchange) -> None:
    """Return the counters to this machine, or with the node's credential. Raises Refused."""
    if not _may_see(node, scope):
        raise Refused(HTTPStatus.FORBIDDEN, "forbidden", "Ask from this machine, or authenticate.")
    _send(exchange, HTTPStatus.OK, metrics_text(node), "text/plain; version=0.0.4; charset=utf-8")


def metrics_text(node: CacheWorker) -> str:
    """Return the counters and gauges as Prometheus reads them."""
    held = node.store.held()
    gauges = {
        "used_bytes": ("What objects take on the disk, whole blocks.", held.used_bytes),
        "capacity_bytes": ("The most they may.", node.options.capacity_bytes),
        "objects": ("Objects that are held.", held.objects),
        "evictions": ("Objects evicted since the store was made.", held.evictions),
        "brain_up": ("Whether the last heartbeat was answered.", int(node.is_brain_up)),
        "direct_answers": (
            "Responses to clients that are being sent.",
            node.direct_answers,
        ),
        "tickets_in_use": ("Clients' tickets with unwritten use.", len(node.receipts)),
        "problems": ("Problems there are now.", len(node.problems.now())),
    }
    return node.counters.text(gauges)


def _may_see(node: CacheWorker, scope: HttpScope) -> bool:
    if scope.is_local:
        return True
    expected = authorization(node.options.node_id, node.options.secret)
    given = scope.headers.get("authorization")
    return hmac.compare_digest(given.encode(), expected.encode())


def _send(exchange: Exchange, status: HTTPStatus, body: str, content_type: str) -> None:
    headers = [
        ("content-type", content_type),
        ("content-length", str(len(body.encode()))),
        ("cache-control", "no-store"),
    ]
    exchange.response_str(status, headers, body)
