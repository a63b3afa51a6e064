"""Direct mode: a redirect to the worker itself, for plain HTTP clients that may have it.

SDKs do not follow it, so a request that is signed in its header gets it only on demand.
"""

import ipaddress
import time
from collections.abc import Sequence
from typing import Final

from edgecache.brain.aws.requests import S3Request
from edgecache.brain.core.values import BucketInfo, ObjectVersion
from edgecache.brain.delivery.plan import WorkerSource
from edgecache.brain.nodes.tickets import TicketGrant
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects.selection import ObjectSelection
from edgecache.http.addresses import parse_address
from edgecache.protocol.names import TICKET_PARAMETER, object_path
from edgecache.protocol.tickets import TicketKind

OPT_IN: Final = "x-zonal-redirect"
PREFIX_BITS: Final = {4: 24, 6: 64}


def redirect_to_worker(
    context: RequestContext,
    bucket: BucketInfo,
    version: ObjectVersion,
    selection: ObjectSelection,
    sources: Sequence[WorkerSource],
) -> S3Response | None:
    """Return a 307 with a ticket for these bytes; None where the brain sends them itself."""
    request = context.request
    if not sources or version.size == 0 or not may_redirect(request, bucket):
        return None
    if context.exchange.added:
        # A browser follows it only to a server with CORS headers, which workers do not send.
        return None
    source = sources[0]
    grant = TicketGrant(
        bucket.tenant, bucket.id, version.sha256, selection.span.length, selection.span.start
    )
    ticket = context.dependencies.tickets.sign(
        TicketKind.READ,
        source.node_id,
        grant,
        now=time.time(),
        client_prefix=client_prefix(request.client),
    )
    location = f"{source.endpoint}{object_path(version.sha256)}?{TICKET_PARAMETER}={ticket}"
    return S3Response(307, [("location", location), ("cache-control", "no-store")])


def may_redirect(request: S3Request, bucket: BucketInfo) -> bool:
    """True if the request asks for redirects, or its bucket allows them for plain clients."""
    if bucket.verifies_reads:
        return False
    is_sdk = bool(request.header("authorization"))
    return request.header(OPT_IN) == "1" or (bucket.allows_redirect and not is_sdk)


def client_prefix(address: str) -> str:
    """Return the network that a ticket is valid for: IPv4 /24, IPv6 /64."""
    client = parse_address(address)
    if client is None:
        raise ValueError(address)
    return str(ipaddress.ip_network((client, PREFIX_BITS[client.version]), strict=False))
