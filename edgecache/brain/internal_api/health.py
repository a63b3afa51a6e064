"""``GET /health``: whether this brain can do its work."""

from uuid import UUID

from edgecache.brain.database import Database
from edgecache.brain.json_api import Answer, Call, Route


def routes(database: Database, brain_id: UUID) -> list[Route]:
    """Give the path; it needs no credential."""

    async def health(_call: Call) -> Answer:
        await database.one("SELECT 1")
        return Answer({"status": "ok", "brain_id": str(brain_id)})

    return [Route("GET", "/health", health, is_open=True)]
