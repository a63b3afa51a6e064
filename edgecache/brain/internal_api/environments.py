"""``DELETE /v1/environments/{organization}/{environment}``: all of it goes."""

from typing import TYPE_CHECKING, Final

from edgecache.brain.directory import tenants
from edgecache.brain.internal_api.bodies import Body
from edgecache.brain.json_api import Answer, Call, Route

if TYPE_CHECKING:
    from edgecache.brain.app import Brain

TIMEOUT_S: Final = 600.0


def routes(brain: "Brain") -> list[Route]:
    """Give the path."""

    async def drop(call: Call) -> Answer:
        body = Body(call.captures)
        tenant = body.tenant()
        body.finish()
        await tenants.drop(brain.database, brain.coherence, brain.staging, brain.purges, tenant)
        return Answer(status=204)

    path = "/v1/environments/{organization_id}/{environment_pk}"
    return [Route("DELETE", path, drop, timeout_s=TIMEOUT_S)]
