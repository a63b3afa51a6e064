"""Origins as tenants see them: create, list, change, delete. No secret is returned."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson
from msgspec import UNSET, UnsetType
from psycopg import errors as postgres
from psycopg.types.json import Jsonb

from common.crypto import encrypt
from edgecache.brain.core.creator import NO_CREATOR, Creator
from edgecache.brain.core.errors import InUse, NoSuchOrigin, OriginExists, OriginOptionsChanged
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db import environment_limits
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.origins.config import OriginConfig, check_options, parse
from edgecache.protocol.resources import OriginOptions

# Those of OriginInfo.
COLUMNS: Final = "id, name, kind, config, secret <> '' AS has_secret, created_by, created_at"
OPTIONS: Final = OriginOptions.__struct_fields__


def _sql(text: LiteralString) -> LiteralString:
    """Return SQL with the names of columns.

    ``{columns}``: of an origin; ``{options}``: of OriginOptions; ``{values}``: as many parameters.
    """
    options = ", ".join(OPTIONS)
    values = ", ".join("%s" for _ in OPTIONS)
    with_columns = text.replace("{columns}", f"{COLUMNS}, {options}")
    return with_columns.replace("{options}", options).replace("{values}", values)


INSERT: Final = _sql(
    "INSERT INTO brain_origin (organization_id, environment_pk, name, kind, config, secret,"
    " created_by, creator_id, {options}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, {values})"
    " RETURNING {columns}"
)
LIST: Final = _sql(
    "SELECT {columns} FROM brain_origin WHERE organization_id = %s AND environment_pk = %s"
    ' ORDER BY name COLLATE "C"'
)
FIND: Final = _sql(
    "SELECT {columns}, secret FROM brain_origin"
    " WHERE organization_id = %s AND environment_pk = %s AND id = %s FOR UPDATE"
)
CHANGE: Final = _sql(
    "UPDATE brain_origin SET secret = %s, ({options}) = ROW({values}) WHERE id = %s"
    " RETURNING {columns}"
)


class OriginInfo(OriginOptions, frozen=True, kw_only=True):
    """An origin without its secret."""

    id: int
    name: str
    kind: str
    config: Mapping[str, str]
    has_secret: bool
    created_by: str
    created_at: datetime


DEFAULTS: Final = OriginOptions()


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
        return [OriginInfo(**row._asdict()) for row in rows]

    async def create(
        self,
        tenant: EnvironmentKey,
        name: str,
        kind: str,
        config: Mapping[str, Any],
        secret: Mapping[str, Any] | None,
        *,
        options: OriginOptions = DEFAULTS,
        creator: Creator = NO_CREATOR,
    ) -> OriginInfo:
        """Create an origin of the fields of ``origins.config``; the caller checks the name's form.

        Raises Invalid with the fields, OriginExists, LimitReached, DatabaseUnavailable.
        """
        parsed = parse(kind, config, secret, allows_private=self._allows_private)
        check_options(kind, options)
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
                        *(getattr(options, name) for name in OPTIONS),
                    ],
                )
        except postgres.UniqueViolation:
            raise OriginExists from None
        return _info(row)

    async def change(
        self,
        tenant: EnvironmentKey,
        origin_id: int,
        options: Mapping[str, Any],
        secret: Mapping[str, Any] | UnsetType | None = UNSET,
        *,
        expected: OriginOptions | None = None,
    ) -> OriginInfo:
        """Change an origin's options, and its credentials; its next requests use them.

        options: those that change. secret: all credentials, None for anonymous access.
        Its address never changes: a user could have the stored credentials sent elsewhere.
        expected: the options that the caller has read; None expects nothing.
        Raises NoSuchOrigin, OriginOptionsChanged, Invalid with the fields, DatabaseUnavailable.
        """
        async with self._coherence.transaction() as change:
            row = await change.one(FIND, [*tenant, origin_id])
            if row is None:
                raise NoSuchOrigin
            present = {name: getattr(row, name) for name in OPTIONS}
            if expected is not None and OriginOptions(**present) != expected:
                raise OriginOptionsChanged
            kept = row.secret
            if secret is not UNSET:
                allows = self._allows_private
                kept = _kept(parse(row.kind, row.config, secret, allows_private=allows))
            values = {**present, **options}
            check_options(row.kind, OriginOptions(**values))
            changed = await change.one(CHANGE, [kept, *values.values(), origin_id])
            change.announce("origin", origin_id)
        return _info(changed)

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


def _info(row: Row | None) -> OriginInfo:
    return OriginInfo(**({} if row is None else row._asdict()))


def _kept(parsed: OriginConfig) -> str:
    """Return the credentials as they are stored, or ''."""
    return encrypt(orjson.dumps(dict(parsed.secret)).decode()) if parsed.secret else ""
