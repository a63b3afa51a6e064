"""Organizations: what the platform decides about one, its environments' data, its members' rows.

``PUT /v1/organizations/{id}/service``: may other operators' nodes serve its objects?
``PUT /v1/operators/{id}/networks``: of recent sessions of an operator's members.
``/v1/environments/{organization}/{environment}``: counts or deletes all data of an environment.
``/v1/organizations/{id}/creators/{user_id}``: what a member created, and the end of its keys.
"""

from datetime import datetime
from typing import Annotated, Final, LiteralString
from uuid import UUID

from msgspec import Meta

from edgecache.brain.access.access_keys import TOPIC
from edgecache.brain.core.errors import NotFound
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import tenants
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.internal_api.buckets import number
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.metering.creditable_reads import prefixes_of
from edgecache.brain.metering.operator_networks import MAX_NETWORKS, OperatorNetworks
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.protocol.fields import Message, RowId, Text

REMOVAL_TIMEOUT_S: Final = 600.0
COUNT: Final = (
    "WITH own AS (SELECT id FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s)"
    " SELECT (SELECT count(*) FROM own) AS buckets,"
    " count(*) FILTER (WHERE object.is_current) AS objects,"
    " coalesce(sum(blob.size), 0)::bigint AS object_bytes,"
    " (SELECT count(*) FROM brain_accesskey WHERE organization_id = %s AND environment_pk = %s)"
    " AS access_keys FROM own JOIN (SELECT bucket_id, blob_id, true AS is_current"
    " FROM brain_storedobject UNION ALL SELECT bucket_id, blob_id, false"
    " FROM brain_noncurrentversion) AS object ON object.bucket_id = own.id"
    " JOIN brain_blob AS blob ON blob.sha256 = object.blob_id"
)

CREATOR_PATH: Final = "/v1/organizations/{id}/creators/{user_id}"
CREATED_BY: Final[dict[str, LiteralString]] = {
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
REVOKE_KEYS: Final[LiteralString] = (
    "DELETE FROM brain_accesskey WHERE organization_id = %s AND creator_id = %s"
    " AND created_at <= coalesce(%s::timestamptz, 'infinity') RETURNING id"
)


class ServiceDecision(Message, frozen=True):
    """Whether operators' nodes may serve an organization. version: rises with each decision."""

    is_stopped: bool
    version: RowId


class Networks(Message, frozen=True):
    """Networks of an operator's members."""

    networks: Annotated[list[Text], Meta(max_length=MAX_NETWORKS)] = []


class RevocationQuery(Message, frozen=True):
    """Revoke keys that were created until then; None: all."""

    until: Annotated[datetime, Meta(tz=True)] | None = None


def routes(dependencies: InternalApiDependencies) -> list[Route]:
    return [
        *_environment_routes(dependencies),
        *_decision_routes(dependencies.nodes, dependencies.networks),
        *_creator_routes(dependencies.database, dependencies.coherence),
    ]


def _environment_routes(dependencies: InternalApiDependencies) -> list[Route]:
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
            dependencies.purges,
            tenant,
        )
        return JsonResponse(status=204)

    path = "/v1/environments/{organization_id}/{environment_pk}"
    return [Route("GET", path, count), Route("DELETE", path, drop, timeout_s=REMOVAL_TIMEOUT_S)]


def _decision_routes(nodes: KnownNodes, networks: OperatorNetworks) -> list[Route]:
    async def decide(call: JsonCall) -> JsonResponse:
        body = call.read(ServiceDecision)
        await nodes.stopped.decide(number(call), body.version, is_stopped=body.is_stopped)
        return JsonResponse(status=204)

    async def replace(call: JsonCall) -> JsonResponse:
        await networks.replace(number(call), prefixes_of(call.read(Networks).networks))
        return JsonResponse(status=204)

    return [
        Route("PUT", "/v1/organizations/{id}/service", decide),
        Route("PUT", "/v1/operators/{id}/networks", replace),
    ]


def _creator_routes(database: BrainDatabase, coherence: Coherence) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        whose = [number(call), _user_id(call)]
        found = {name: await database.all(sql, whose) for name, sql in CREATED_BY.items()}
        return JsonResponse({name: [row._asdict() for row in rows] for name, rows in found.items()})

    async def revoke(call: JsonCall) -> JsonResponse:
        until = call.read_query(RevocationQuery).until
        async with coherence.transaction() as change:
            gone = await change.all(REVOKE_KEYS, [number(call), _user_id(call), until])
            # When this returns, no brain accepts them any more.
            for row in gone:
                change.announce(TOPIC, row.id)
        return JsonResponse({"revoked": [row.id for row in gone]})

    return [
        Route("GET", CREATOR_PATH, listing),
        Route("DELETE", f"{CREATOR_PATH}/access-keys", revoke),
    ]


def _user_id(call: JsonCall) -> UUID:
    try:
        return UUID(call.captures["user_id"])
    except ValueError:
        raise NotFound from None
