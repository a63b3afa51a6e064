"""Origins as tenants see them: create, list, new credentials, delete. No secret is returned."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from psycopg import errors as postgres
from psycopg.types.json import Jsonb

from common.crypto import encrypt
from edgecache.brain.core.creator import NO_CREATOR, Creator
from edgecache.brain.core.errors import InUse, NoSuchOrigin, OriginExists
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db import environment_limits
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.origins.config import OriginConfig, parse

# Those of OriginInfo.
COLUMNS: Final = "id, name, kind, config, secret <> '' AS has_secret, created_by, created_at"
INSERT: Final = (
    "INSERT INTO brain_origin (organization_id, environment_pk, name, kind, config, secret,"
    " created_by, creator_id) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    " RETURNING {columns}"
).replace("{columns}", COLUMNS)
LIST: Final = (
    "SELECT {columns} FROM brain_origin WHERE organization_id = %s AND environment_pk = %s"
    ' ORDER BY name COLLATE "C"'
).replace("{columns}", COLUMNS)
SET_SECRET: Final = (
    "UPDATE brain_origin SET secret = %s"
    " WHERE organization_id = %s AND environment_pk = %s AND id = %s RETURNING {columns}"
).replace("{columns}", COLUMNS)


@dataclass(frozen=True, slots=True)
class OriginInfo:
    """An origin without its secret."""

    id: int
    name: str
    kind: str
    config: Mapping[str, str]
    has_secret: bool
    created_by: str
    created_at: datetime


class Catalog:
    """Changes of origins; all brains see a change when the call returns."""

    def __init__(
        self, database: BrainDatabase, coherence: Coherence, *, allows_private: bool
    ) -> None:
        self._database = database
        self._coherence = coherence
        self._allows_private = allows_private

    async def list(self, tenant: EnvironmentKey) -> list[OriginInfo]:
        """Return the environment's origins by name. Raises DatabaseUnavailable."""
        rows = await self._database.all(LIST, tenant)
        return [OriginInfo(*row) for row in rows]

    async def create(
        self,
        tenant: EnvironmentKey,
        name: str,
        kind: str,
        config: Mapping[str, Any],
        secret: Mapping[str, Any] | None,
        *,
        creator: Creator = NO_CREATOR,
    ) -> OriginInfo:
        """Create an origin of the fields of ``origins.config``; the caller checks the name's form.

        Raises Invalid with the fields, OriginExists, LimitReached, DatabaseUnavailable.
        """
        parsed = parse(kind, config, secret, allows_private=self._allows_private)
        try:
            async with self._database.transaction() as change:
                await environment_limits.check(change, "brain_origin", tenant)
                row = await change.one(
                    INSERT,
                    [
                        *tenant,
                        name,
                        parsed.kind,
                        Jsonb(dict(parsed.config)),
                        _kept(parsed),
                        *creator,
                    ],
                )
        except postgres.UniqueViolation:
            raise OriginExists from None
        return OriginInfo(*(row or ()))

    async def change_secret(
        self, tenant: EnvironmentKey, origin_id: int, secret: Mapping[str, Any] | None
    ) -> OriginInfo:
        """Replace an origin's credentials, which its next requests use; None makes it anonymous.

        Its address never changes: a user could have the stored credentials sent elsewhere.
        Raises NoSuchOrigin, Invalid with the fields, DatabaseUnavailable.
        """
        whose = [*tenant, origin_id]
        async with self._coherence.transaction() as change:
            row = await change.one(
                "SELECT kind, config FROM brain_origin"
                " WHERE organization_id = %s AND environment_pk = %s AND id = %s FOR UPDATE",
                whose,
            )
            if row is None:
                raise NoSuchOrigin
            parsed = parse(row.kind, row.config, secret, allows_private=self._allows_private)
            changed = await change.one(SET_SECRET, [_kept(parsed), *whose])
            change.announce("origin", origin_id)
        return OriginInfo(*(changed or ()))

    async def delete(self, tenant: EnvironmentKey, origin_id: int) -> None:
        """Remove an origin that no bucket names.

        Raises NoSuchOrigin, InUse, DatabaseUnavailable.
        """
        try:
            async with self._coherence.transaction() as change:
                gone = await change.run(
                    "DELETE FROM brain_origin"
                    " WHERE organization_id = %s AND environment_pk = %s AND id = %s",
                    [*tenant, origin_id],
                )
                if not gone:
                    raise NoSuchOrigin
                change.announce("origin", origin_id)
        except postgres.ForeignKeyViolation:
            raise InUse("A bucket still has this origin.") from None


def _kept(parsed: OriginConfig) -> str:
    """Return the credentials as they are stored, or ''."""
    return encrypt(orjson.dumps(dict(parsed.secret)).decode()) if parsed.secret else ""
