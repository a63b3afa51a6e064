"""Decisions that stand: made once, given again while everything that they follow from is the same.

For what is asked for most: a plain GET of a public object that is in memory here, or whose file
nginx can send by itself. The answer follows from host and target of the request, and from what this
brain remembers of bucket, object and nodes. Whatever else a request may say (a signature, a range,
a condition, a header that is not known to change nothing) has it decided anew.
"""

import random
import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from edgecache.brain.delivery.delivery import Source
from edgecache.brain.delivery.nginx_offload import (
    CLIENT_HEADER,
    STORES_HEADER,
    TOKEN_HEADER,
    headers_for_file,
)
from edgecache.brain.metering.meters import Tally
from edgecache.brain.s3.calls import Call, Decision
from edgecache.brain.s3.parts import S3Parts
from edgecache.brain.s3.request_log import Line, RequestLog
from edgecache.http.exchange import COPIED_BYTES
from edgecache.http.heads import date_line, head_before_date
from edgecache.http.request_head import RequestHead
from edgecache.http.scope import address_of

# Each takes some 3 KiB; with a long key, or more headers than most, three times that.
REMEMBERED: Final = 4096
HOST_LIMIT: Final = 255
HEAD_LIMIT_BYTES: Final = 2048
NAMES_REMEMBERED: Final = 1024
REQUEST_ID_BITS: Final = 64
REQUEST_ID_HEADER: Final = "x-amz-request-id"
# Of a request's header names together: what is remembered of them must not be a stranger's to fill.
NAMES_LIMIT_BYTES: Final = 1024

FROM_NGINX: Final = (TOKEN_HEADER, CLIENT_HEADER, STORES_HEADER)
# Nothing here asks for these where an object is read: not authentication, not the conditions.
INDIFFERENT: Final = frozenset(
    (
        *FROM_NGINX,
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "connection",
        "cookie",
        "dnt",
        "forwarded",
        "host",
        "origin",
        "pragma",
        "priority",
        "referer",
        "sec-ch-ua",
        "sec-ch-ua-mobile",
        "sec-ch-ua-platform",
        "sec-fetch-dest",
        "sec-fetch-mode",
        "sec-fetch-site",
        "sec-fetch-user",
        "traceparent",
        "tracestate",
        "upgrade-insecure-requests",
        "user-agent",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-real-ip",
    )
)


# Host and target as they were sent, and the stores that nginx named; None without nginx.
_Name = tuple[bytes, bytes, bytes | None]


class _Places(NamedTuple):
    """Where a plain request's header fields have what counts; none of nginx's without nginx."""

    host: int
    token: int | None = None
    client: int = 0
    stores: int = 0


@dataclass(slots=True)
class _Standing:
    """A decision, and what it followed from. stamp: of the moment when it was last looked through.

    object: bucket, key, variant. head: up to the request's id. line: of its first request, in the
    log.
    """

    name: _Name
    object: tuple[int, str, str]
    decision: Decision
    head: bytes
    host: str
    region: str
    holders: tuple[Any, ...]
    sources: frozenset[Source]
    line: dict[str, Any]
    stamp: int
    tally: Tally


class Standing:
    """The decisions of one brain that stand."""

    def __init__(self, parts: S3Parts, log: RequestLog) -> None:
        self._parts = parts
        self._coherence, self._nodes, self._meters = parts.coherence, parts.nodes, parts.meters
        self._gateway, self._flights = parts.mover.gateway, parts.fills.fetches.flights
        self._log = log
        self._known: dict[_Name, _Standing] = {}
        self._places: dict[tuple[bytes, ...], _Places | None] = {}

    def answer(self, head: RequestHead, peer: str) -> tuple[bytes, ...] | None:
        """Give the whole answer to a GET without a body, None where it has to be decided.

        peer: ``address:port``.
        """
        fields = head.fields
        places = self._places_in(tuple([name for name, _ in fields]))
        if places is None:
            return None
        if places.token is None:
            stores, client = None, address_of(peer)
        else:
            if not self._gateway.knows(fields[places.token][1]):
                return None
            stores, client = fields[places.stores][1], fields[places.client][1].decode("latin-1")
        known = self._known.get((fields[places.host][1], head.target, stores))
        if known is None or not self._stands(known):
            return None
        mover, sha256 = self._parts.mover, known.decision.delivery.sha256
        body = b"" if known.decision.beside else mover.in_memory(sha256)
        if body is None or mover.samples.draw(sha256):
            return None
        return self._again(known, client, body)

    def keep(self, call: Call, decision: Decision, line: Line) -> None:
        """Remember a decision, where another request of the same host and target has the same."""
        scope, bucket = call.exchange.scope, decision.bucket
        is_plain = call.identity is None and not scope.query_string
        if not is_plain or not INDIFFERENT.issuperset(scope.headers):
            return
        # What nginx is told to send has no body here; what it is not told of is not remembered.
        if (decision.beside is None) is (TOKEN_HEADER in scope.headers):
            return
        known = self._made(call, decision, line)
        if len(known.host) > HOST_LIMIT or len(known.head) > HEAD_LIMIT_BYTES:
            return
        if not self._is_the_same(known) or bucket.public_name != call.request.bucket:
            return
        if len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[known.name] = known

    def _made(self, call: Call, decision: Decision, line: Line) -> _Standing:
        request, scope, delivery = call.request, call.exchange.scope, decision.delivery
        headers, size, stores = delivery.headers, delivery.size, None
        if decision.beside is not None:
            headers, size = headers_for_file(delivery, decision.beside), 0
            stores = scope.headers.get(STORES_HEADER).encode("latin-1")
        headers = [row for row in headers if row[0] != REQUEST_ID_HEADER]
        return _Standing(
            (request.host.encode("latin-1"), scope.raw_path.encode("latin-1"), stores),
            (delivery.bucket_id, decision.found.key, decision.found.variant),
            decision,
            head_before_date(200, headers, size) + f"{REQUEST_ID_HEADER}: ".encode(),
            request.host,
            self._parts.locator.region_of(request.client, request.headers),
            self._parts.directory.holders.get(delivery.sha256) or (),
            frozenset(delivery.sources),
            line.fields(scope, call.exchange),
            self._stamp(),
            self._tally(decision),
        )

    def _again(self, known: _Standing, client: str, body: bytes) -> tuple[bytes, ...]:
        began = time.perf_counter()
        delivery, meters = known.decision.delivery, self._meters
        request_id = f"{random.getrandbits(REQUEST_ID_BITS):016X}"
        self._parts.mover.on_read(delivery)
        if not meters.is_open(known.tally):
            known.tally = self._tally(known.decision)
        seconds = time.perf_counter() - began
        known.tally.add(is_hit=True, bytes_served=delivery.size, seconds=seconds)
        meters.repeated += 1
        if self._log.is_on:
            said = known.line.copy()
            said["ms"], said["client"] = round(seconds * 1000, 2), client
            said["request_id"] = request_id
            self._log.write(said)
        head = b"".join((known.head, request_id.encode(), b"\r\n", date_line(), b"\r\n"))
        return (head, body) if len(body) > COPIED_BYTES else (head + body,)

    def _tally(self, decision: Decision) -> Tally:
        delivery = decision.delivery
        node_id = decision.beside.node_id if decision.beside else None
        return self._meters.tally(delivery.tenant, delivery.bucket_id, node_id)

    def _stands(self, known: _Standing) -> bool:
        """Tell whether deciding anew would come to the same."""
        # Who asks while it is fetched waits for that, whatever was known before.
        if not self._coherence.is_current or known.object in self._flights:
            return False
        stamp = self._stamp()
        if known.stamp != stamp:
            if not self._is_the_same(known):
                del self._known[known.name]
                return False
            known.stamp = stamp
        return True

    def _stamp(self) -> int:
        # Both only rise.
        return self._coherence.changes + self._nodes.changes

    def _is_the_same(self, known: _Standing) -> bool:
        """Look through all that a decision followed from, as far as it can change."""
        parts, (bucket, found, delivery, _) = self._parts, known.decision
        directory = parts.directory
        return (
            parts.hosts.names_none(known.host)
            and directory.known_public(bucket.public_name) is bucket
            and directory.index.get(known.object) is found
            and directory.holders.get(delivery.sha256) == known.holders
            and known.sources
            == frozenset(
                parts.nodes.sources(
                    known.holders,
                    known.region,
                    organization_id=bucket.tenant.organization_id,
                    is_public=bucket.is_public,
                )
            )
        )

    def _places_in(self, names: tuple[bytes, ...]) -> _Places | None:
        try:
            return self._places[names]
        except KeyError:
            pass
        if sum(map(len, names)) > NAMES_LIMIT_BYTES:
            return None
        if len(self._places) >= NAMES_REMEMBERED:
            self._places.clear()
        places = self._places[names] = _places_of([name.decode("latin-1") for name in names])
        return places


def _places_of(names: list[str]) -> _Places | None:
    """Give the places in a plain request, None for any other."""
    lower = [name.lower() for name in names]
    if not INDIFFERENT.issuperset(lower) or len(set(lower)) != len(lower) or "host" not in lower:
        return None
    if TOKEN_HEADER not in lower:
        return _Places(lower.index("host"))
    if not {CLIENT_HEADER, STORES_HEADER}.issubset(lower):
        return None
    return _Places(*(lower.index(name) for name in ("host", *FROM_NGINX)))
