"""ListBuckets: the buckets of the caller's environment."""

from typing import Final

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.listing import iso, of_token, owner_id, token_of
from edgecache.brain.s3.xml import Node, document

LIMIT: Final = 10_000
BUCKETS: Final = (
    "SELECT name, created_at FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s"
    ' AND name COLLATE "C" > %s AND starts_with(name, %s) ORDER BY name COLLATE "C" LIMIT %s'
)


async def run(call: Call) -> Answer:
    """Answer with a page of names, all of them unless the caller asks for less."""
    tenant, request = call.tenant, call.request
    limit = request.integer("max-buckets", LIMIT, maximum=LIMIT)
    if limit == 0:
        raise S3Error("InvalidArgument", "Argument max-buckets must be from 1 to 10000.")
    token = request.query("continuation-token")
    after = of_token(token) if token else ""
    prefix = request.query("prefix")
    rows = await call.parts.database.all(
        BUCKETS, [tenant.organization_id, tenant.environment_pk, after, prefix, limit + 1]
    )
    page = rows[:limit]
    buckets: list[Node] = [
        ("Bucket", [("Name", row.name), ("CreationDate", iso(row.created_at))]) for row in page
    ]
    nodes: list[Node | None] = [
        ("Owner", [("ID", owner_id(tenant))]),
        ("Buckets", buckets),
        ("Prefix", prefix) if prefix else None,
        ("ContinuationToken", token_of(page[-1].name)) if len(rows) > limit else None,
    ]
    return Answer(body=document("ListAllMyBucketsResult", nodes))
