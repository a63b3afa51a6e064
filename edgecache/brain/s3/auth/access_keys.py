"""Access keys of the object API, cached until one changes.

Announced topic: ``access_key`` (its id), when one is created or deleted.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from cryptography.fernet import InvalidToken

from edgecache.brain.database import Database
from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.directory.coherence import Coherence
from platform_site.lib.crypto import decrypt

TOPIC: Final = "access_key"
KEPT: Final = 10_000
ID_LIMIT: Final = 32
FIND: Final = (
    "SELECT id, organization_id, environment_pk, secret, access FROM brain_accesskey WHERE id = %s"
)
USED: Final = (
    "UPDATE brain_accesskey SET last_used_at = now()"
    " WHERE id = %s AND (last_used_at IS NULL OR last_used_at < now() - interval '1 hour')"
)


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An access key. secret: in clear text, as signatures need it."""

    id: str
    tenant: Tenant
    secret: str = field(repr=False)
    can_write: bool


class AccessKeys:
    """Finds access keys; the cache is used only while it is coherent."""

    def __init__(self, database: Database, coherence: Coherence) -> None:
        self._database = database
        self._coherence = coherence
        self._known: dict[str, AccessKey] = {}
        self._loading: dict[str, asyncio.Task[AccessKey | None]] = {}
        self._marks = 0
        coherence.subscribe(TOPIC, self._forget)
        coherence.on_loss(self._forget)

    async def find(self, key_id: str) -> AccessKey | None:
        """Return the key of this id.

        Raises DatabaseAway.
        """
        if self._coherence.is_current:
            known = self._known.get(key_id)
            if known is not None:
                return known
        if not 0 < len(key_id) <= ID_LIMIT or "\0" in key_id:
            return None
        if not self._coherence.is_current:
            return await self._load(key_id)
        loading = self._loading.get(key_id)
        if loading is None:
            loading = self._loading[key_id] = asyncio.create_task(self._load(key_id))
            loading.add_done_callback(partial(self._loaded, key_id))
        # One request's cancellation must not cancel the others.
        return await asyncio.shield(loading)

    async def _load(self, key_id: str) -> AccessKey | None:
        marks = self._marks
        row = await self._database.one(FIND, [key_id])
        if row is None:
            return None
        try:
            secret = decrypt(row.secret)
        except InvalidToken:
            return None
        tenant = Tenant(row.organization_id, row.environment_pk)
        key = AccessKey(row.id, tenant, secret, row.access == "write")
        await self._database.run(USED, [key_id])
        if self._coherence.is_current and marks == self._marks:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key_id] = key
        return key

    def _loaded(self, key_id: str, loading: asyncio.Task[AccessKey | None]) -> None:
        if self._loading.get(key_id) is loading:
            del self._loading[key_id]
        if not loading.cancelled():
            # Retrieved, so that asyncio does not report it: the requests may have been cancelled.
            loading.exception()

    def _forget(self, *_key_id: str) -> None:
        self._marks += 1
        self._known.clear()
        # Requests from now on must not get what was read before.
        self._loading.clear()
