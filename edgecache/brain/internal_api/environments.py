"""``/v1/environments/{organization}/{environment}``: counts or deletes all its data."""

from typing import Final

from edgecache.brain.directory import tenants
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route

TIMEOUT_S: Final = 600.0
COUNT: Final = (
    "WITH own AS (SELECT id FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s)"
    " SELECT (SELECT count(*) FROM own) AS buckets, count(object.id) AS objects,"
    " coalesce(sum(blob.size), 0)::bigint AS object_bytes,"
    " (SELECT count(*) FROM brain_accesskey WHERE organization_id = %s AND environment_pk = %s)"
    " AS access_keys FROM own JOIN brain_storedobject AS object ON object.bucket_id = own.id"
    " JOIN brain_blob AS blob ON blob.sha256 = object.blob_id"
)


def routes(dependencies: InternalApiDependencies) -> list[Route]:
    async def count(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.captures)
        whose = tenant
        row = await dependencies.database.one(COUNT, [*whose, *whose])
        return JsonResponse(row._asdict() if row is not None else None)

    async def drop(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.captures)
        await tenants.drop(
            dependencies.database,
            dependencies.coherence,
            dependencies.data_directory,
            dependencies.purges,
            tenant,
        )
        return JsonResponse(status=204)

    path = "/v1/environments/{organization_id}/{environment_pk}"
    return [Route("GET", path, count), Route("DELETE", path, drop, timeout_s=TIMEOUT_S)]
