"""ListObjectsV2: pages go on with a token."""

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.listing import (
    asked,
    common_prefixes,
    contents,
    of_token,
    owner_id,
    page,
    token_of,
)
from edgecache.brain.s3.xml import Node, document


async def run(call: Call) -> Answer:
    """Answer with a page."""
    request = call.request
    what = asked(request)
    token = request.query("continuation-token")
    start_after = request.query("start-after")
    listing = await page(call, what, start_after=of_token(token) if token else start_after)
    owner = owner_id(call.tenant) if request.query("fetch-owner") == "true" else ""
    nodes: list[Node | None] = [
        ("Name", request.bucket),
        *what.nodes(),
        ("StartAfter", what.name(start_after)) if start_after else None,
        ("ContinuationToken", token) if token else None,
        ("KeyCount", len(listing.objects) + len(listing.prefixes)),
        ("IsTruncated", listing.next is not None),
        ("NextContinuationToken", token_of(listing.next)) if listing.next else None,
        *(contents(what, row, owner=owner) for row in listing.objects),
        *common_prefixes(what, listing.prefixes),
    ]
    return Answer(body=document("ListBucketResult", nodes))
