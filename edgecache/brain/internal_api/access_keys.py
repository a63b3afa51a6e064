"""``/v1/access-keys``: pairs for the object API. A secret is shown once, in the answer to POST."""

from typing import Final
from uuid import UUID

from common.crypto import encrypt
from edgecache.brain.access.access_keys import TOPIC, new_pair
from edgecache.brain.db import environment_limits
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.json_api.errors import AccessKeyNotFound
from edgecache.protocol.fields import Text
from edgecache.protocol.resources import AccessKeyOptions

COLUMNS: Final = "id AS access_key_id, label, access, created_by, created_at, last_used_at"
LIST: Final = (
    "SELECT {columns} FROM brain_accesskey"
    " WHERE organization_id = %s AND environment_pk = %s ORDER BY created_at, id"
).replace("{columns}", COLUMNS)
INSERT: Final = (
    "INSERT INTO brain_accesskey (id, organization_id, environment_pk, secret, label, access,"
    " created_by, creator_id) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    " RETURNING {columns}"
).replace("{columns}", COLUMNS)
DELETE: Final = (
    "DELETE FROM brain_accesskey WHERE organization_id = %s AND environment_pk = %s AND id = %s"
)


class AccessKeyRequest(AccessKeyOptions, frozen=True, kw_only=True):
    """A key to create."""

    created_by: Text = ""
    creator_id: UUID | None = None


def routes(database: BrainDatabase, coherence: Coherence) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        rows = await database.all(LIST, tenant)
        return JsonResponse({"access_keys": [row._asdict() for row in rows]})

    async def create(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        body = call.read(AccessKeyRequest)
        key_id, secret = new_pair()
        async with database.transaction() as change:
            await environment_limits.check(change, "brain_accesskey", tenant)
            values = [
                key_id,
                *tenant,
                encrypt(secret),
                body.label,
                body.access,
                body.created_by,
                body.creator_id,
            ]
            row = await change.one(INSERT, values)
        found = {} if row is None else row._asdict()
        return JsonResponse({**found, "secret_access_key": secret}, 201)

    async def delete(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        key_id = call.captures["id"]
        async with coherence.transaction() as change:
            values = [*tenant, key_id]
            if "\0" in key_id or not await change.run(DELETE, values):
                raise AccessKeyNotFound
            # When this returns, no brain accepts it any more.
            change.announce(TOPIC, key_id)
        return JsonResponse(status=204)

    return [
        Route("GET", "/v1/access-keys", listing),
        Route("POST", "/v1/access-keys", create),
        Route("DELETE", "/v1/access-keys/{id}", delete),
    ]
