"""``POST /v1/workers/{id}/inventory``: what a node holds. The disk is the truth for bytes.

A full inventory arrives in pages, perhaps at several brains. Its beginning is recorded; each page
touches the rows of its blobs; the last page removes the rows that no page has touched.
"""

from typing import Final, LiteralString

from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.replica_plan import request_check
from edgecache.brain.workers_api.dependencies import WorkersApiDependencies
from edgecache.protocol.inventories import Inventory, InventoryAnswer

BEGIN: Final[LiteralString] = (
    "UPDATE brain_node SET inventory_at = clock_timestamp(), inventory_of = '' WHERE id = %s"
)
# Referenced blobs that may be on this node; all others the node need not keep.
KNOWN: Final[LiteralString] = """
    SELECT blob.sha256 FROM brain_blob blob
    JOIN unnest(%b::bytea[], %b::bigint[]) AS held (sha256, size) USING (sha256, size)
    WHERE EXISTS (
        SELECT FROM brain_cachedobject c JOIN brain_bucket b ON b.id = c.bucket_id
        WHERE c.blob_id = blob.sha256
          AND (b.is_public OR %s::bigint IS NULL OR b.organization_id = %s))
    ORDER BY blob.sha256 FOR KEY SHARE OF blob
"""
# A row that is younger than the last full inventory counts as touched: a brain has written it after
# a PUT, and the node reports the same.
TOUCH: Final[LiteralString] = """
    INSERT INTO brain_location AS l (blob_id, node_id)
    SELECT sha256, %s FROM unnest(%b::bytea[]) AS held (sha256)
    ON CONFLICT (blob_id, node_id) DO UPDATE SET created_at = clock_timestamp()
        WHERE l.created_at < (SELECT inventory_at FROM brain_node WHERE id = l.node_id)
    RETURNING blob_id, xmax = 0 AS is_new
"""
# Blobs that may now have too many copies; concurrent additions are not seen.
PLENTY: Final[LiteralString] = """
    SELECT blob_id FROM brain_location WHERE blob_id = ANY(%b)
    GROUP BY blob_id HAVING count(*) >= %s
"""
REMOVED: Final[LiteralString] = """
    DELETE FROM brain_location WHERE node_id = %s AND blob_id = ANY(%b) RETURNING blob_id
"""
UNTOUCHED: Final[LiteralString] = """
    DELETE FROM brain_location l USING brain_node n
    WHERE n.id = %s AND l.node_id = n.id AND l.created_at < n.inventory_at
    RETURNING l.blob_id
"""
END: Final[LiteralString] = (
    "UPDATE brain_node SET inventory_of = %s WHERE id = %s AND incarnation = %s"
)


def routes(dependencies: WorkersApiDependencies) -> list[Route]:
    async def inventory(call: JsonCall) -> JsonResponse:
        message = call.read(Inventory)
        node: NodeRow = call.caller
        if node.status not in {"active", "draining"}:
            # An inactive node; it sends a full inventory when it becomes active again.
            return JsonResponse(InventoryAnswer())
        async with dependencies.coherence.transaction(wait_for_acks=False) as change:
            unknown = await _take(change, node, message, dependencies.settings.replicas)
        return JsonResponse(InventoryAnswer(unknown))

    return [Route("POST", "/v1/workers/{node_id}/inventory", inventory)]


async def _take(
    change: AnnouncingTransaction, node: NodeRow, message: Inventory, copies: int
) -> tuple[bytes, ...]:
    """Store a page; return the blobs that the node need not keep. copies: usual number."""
    if message.full and message.page == 0:
        await change.run(BEGIN, [node.id])
    unknown = await _take_added(change, node, message, copies)
    lost = await change.all(REMOVED, [node.id, list(message.removed)])
    if message.full and message.last:
        lost += await change.all(UNTOUCHED, [node.id])
        await change.run(END, [message.incarnation, node.id, message.incarnation])
    # A removal that came late, or a file that was deleted by hand: a replica is missing.
    request_check(change, (row.blob_id for row in lost))
    for row in lost:
        change.announce("blob", row.blob_id.hex())
    return unknown


async def _take_added(
    change: AnnouncingTransaction, node: NodeRow, message: Inventory, copies: int
) -> tuple[bytes, ...]:
    if not message.added:
        return ()
    hashes = [held.sha256 for held in message.added]
    sizes = [held.size for held in message.added]
    owner = node.organization_id
    known = {row.sha256 for row in await change.all(KNOWN, [hashes, sizes, owner, owner])}
    touched = await change.all(TOUCH, [node.id, sorted(known)])
    new = [row.blob_id for row in touched if row.is_new]
    for sha256 in new:
        change.announce("blob", sha256.hex())
    # The report is late: the copy may have been made elsewhere since, or its deletion ordered.
    plenty = await change.all(PLENTY, [new, copies]) if new else ()
    request_check(change, (row.blob_id for row in plenty))
    return tuple(sha256 for sha256 in hashes if sha256 not in known)
