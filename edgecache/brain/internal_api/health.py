"""``GET /health``: whether this brain can do its work."""

from typing import TYPE_CHECKING

from edgecache.brain.json_api import Answer, Call, Route

if TYPE_CHECKING:
    from edgecache.brain.app import Brain


def routes(brain: "Brain") -> list[Route]:
    """Give the path; it needs no credential."""

    async def health(_call: Call) -> Answer:
        await brain.database.one("SELECT 1")
        return Answer({"status": "ok", "brain_id": str(brain.id)})

    return [Route("GET", "/health", health, is_open=True)]
