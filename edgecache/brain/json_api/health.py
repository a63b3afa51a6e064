"""``GET /health``: whether this brain can do its work."""

from uuid import UUID

from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route


def routes(database: BrainDatabase, brain_id: UUID) -> list[Route]:
    """Return the route; it needs no credential."""

    async def health(_call: JsonCall) -> JsonResponse:
        await database.one("SELECT 1")
        return JsonResponse({"status": "ok", "brain_id": str(brain_id)})

    return [Route("GET", "/health", health, is_open=True)]
