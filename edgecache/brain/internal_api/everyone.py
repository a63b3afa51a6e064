"""``/v1/everyone/…``: all tenants' buckets and access keys, a page at a time, for the staff.

Paths of their own, so that a call that forgot its tenant never gets another's.
"""

from typing import Any, Final

from edgecache.brain.database import Database
from edgecache.brain.directory.directory import BUCKET, bucket_of
from edgecache.brain.internal_api import buckets
from edgecache.brain.json_api import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import Fields

PAGE: Final = 100
KEY_ID_CHARS: Final = 64
BUCKETS: Final = BUCKET + "id > %s ORDER BY id LIMIT %s"
KEYS: Final = (
    "SELECT id AS access_key_id, organization_id, environment_pk, label, access, created_at,"
    " last_used_at FROM brain_accesskey WHERE id > %s ORDER BY id LIMIT %s"
)


def routes(database: Database) -> list[Route]:
    """Return the routes. after: of the query, the last page's ``next``; that is null at the end."""

    async def all_buckets(call: JsonCall) -> JsonResponse:
        query = Fields(call.query, is_text=True)
        after = query.integer("after", default=0)
        query.finish()
        rows = await database.all(BUCKETS, [after, PAGE + 1])
        shapes = [buckets.shape(bucket_of(row)) | _owner(row) for row in rows]
        return JsonResponse(_page("buckets", shapes, "id"))

    async def all_keys(call: JsonCall) -> JsonResponse:
        query = Fields(call.query)
        after = query.text("after", limit=KEY_ID_CHARS, default="")
        query.finish()
        rows = await database.all(KEYS, [after, PAGE + 1])
        keys = [row._asdict() for row in rows]
        return JsonResponse(_page("access_keys", keys, "access_key_id"))

    return [
        Route("GET", "/v1/everyone/buckets", all_buckets),
        Route("GET", "/v1/everyone/access-keys", all_keys),
    ]


def _owner(row: Any) -> dict[str, int]:
    return {"organization_id": row.organization_id, "environment_pk": row.environment_pk}


def _page(name: str, rows: list[dict[str, Any]], id_field: str) -> dict[str, Any]:
    shown = rows[:PAGE]
    return {name: shown, "next": str(shown[-1][id_field]) if len(rows) > PAGE else None}
