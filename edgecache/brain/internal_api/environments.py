"""``DELETE /v1/environments/{organization}/{environment}``: deletes all its data."""

from typing import Final

from edgecache.brain.database import Database
from edgecache.brain.directory import tenants
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.purges import Purges
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.json_api import JsonCall, JsonResponse, Route
from edgecache.brain.storage.staging import Staging

TIMEOUT_S: Final = 600.0


def routes(
    database: Database, coherence: Coherence, staging: Staging, purges: Purges
) -> list[Route]:
    """Return the route."""

    async def drop(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.captures)
        await tenants.drop(database, coherence, staging, purges, tenant)
        return JsonResponse(status=204)

    path = "/v1/environments/{organization_id}/{environment_pk}"
    return [Route("DELETE", path, drop, timeout_s=TIMEOUT_S)]
