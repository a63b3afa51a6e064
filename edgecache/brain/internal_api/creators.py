"""``/v1/organizations/{id}/creators/{user_id}``: what a member created, and the end of its keys."""

from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from edgecache.brain.access.access_keys import TOPIC
from edgecache.brain.core.errors import NotFound
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import FieldReader

PATH: Final = "/v1/organizations/{id}/creators/{user_id}"
LISTINGS: Final[dict[str, LiteralString]] = {
    "access_keys": (
        "SELECT id, label AS name, environment_pk FROM brain_accesskey"
        " WHERE organization_id = %s AND creator_id = %s ORDER BY created_at, id"
    ),
    "origins": (
        "SELECT id::text, name, environment_pk FROM brain_origin"
        " WHERE organization_id = %s AND creator_id = %s ORDER BY environment_pk, name"
    ),
    "nodes": (
        "SELECT id::text, endpoint AS name, NULL AS environment_pk FROM brain_node"
        " WHERE organization_id = %s AND creator_id = %s AND removed_at IS NULL ORDER BY id"
    ),
}
REVOKE: Final[LiteralString] = (
    "DELETE FROM brain_accesskey WHERE organization_id = %s AND creator_id = %s"
    " AND created_at <= coalesce(%s::timestamptz, 'infinity') RETURNING id"
)


def routes(database: BrainDatabase, coherence: Coherence) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        whose = [number(call), _user_id(call)]
        found = {name: await database.all(sql, whose) for name, sql in LISTINGS.items()}
        return JsonResponse({name: [row._asdict() for row in rows] for name, rows in found.items()})

    async def revoke(call: JsonCall) -> JsonResponse:
        query = FieldReader(dict(call.query), is_text=True)
        until = None
        if query.is_given("until"):
            until = query.converted("until", _time, "must be an ISO 8601 time", None)
        query.finish()
        async with coherence.transaction() as change:
            gone = await change.all(REVOKE, [number(call), _user_id(call), until])
            # When this returns, no brain accepts them any more.
            for row in gone:
                change.announce(TOPIC, row.id)
        return JsonResponse({"revoked": [row.id for row in gone]})

    return [
        Route("GET", PATH, listing),
        Route("DELETE", f"{PATH}/access-keys", revoke),
    ]


def _user_id(call: JsonCall) -> UUID:
    try:
        return UUID(call.captures["user_id"])
    except ValueError:
        raise NotFound from None


def _time(value: object) -> datetime | None:
    """Return a time with an offset, or None if it is not one."""
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo else None
