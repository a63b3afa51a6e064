"""ListObjects: the first version, whose pages go on behind a marker."""

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.listing import asked, common_prefixes, contents, owner_id, page
from edgecache.brain.s3.xml import Node, document


async def run(call: Call) -> Answer:
    """Answer with a page; NextMarker stands there where the last key alone would not do."""
    what = asked(call.request)
    marker = call.request.query("marker")
    listing = await page(call, what, start_after=marker)
    owner = owner_id(call.tenant)
    nodes: list[Node | None] = [
        ("Name", call.request.bucket),
        ("Marker", what.name(marker)),
        *what.nodes(),
        ("IsTruncated", listing.next is not None),
        ("NextMarker", what.name(listing.next)) if listing.next and what.delimiter else None,
        *(contents(what, row, owner=owner) for row in listing.objects),
        *common_prefixes(what, listing.prefixes),
    ]
    return Answer(body=document("ListBucketResult", nodes))
