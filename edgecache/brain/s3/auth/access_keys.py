"""Access keys of the object API, cached until one changes.

Announced topic: ``access_key`` (its id), when one is created or deleted.
"""

from typing import Final

from cryptography.fernet import InvalidToken

from edgecache.brain.database import Database
from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.coherent_cache import CoherentCache
from edgecache.brain.s3.auth.platform_keys import AccessKey, PlatformKeys, is_platform_key
from platform_site.lib.crypto import decrypt

TOPIC: Final = "access_key"
ID_LIMIT: Final = 32
FIND: Final = (
    "SELECT id, organization_id, environment_pk, secret, access FROM brain_accesskey WHERE id = %s"
)
USED: Final = (
    "UPDATE brain_accesskey SET last_used_at = now()"
    " WHERE id = %s AND (last_used_at IS NULL OR last_used_at < now() - interval '1 hour')"
)


class AccessKeys:
    """Finds access keys; the cache is used only while it is coherent."""

    def __init__(
        self, database: Database, coherence: Coherence, platform_keys: PlatformKeys
    ) -> None:
        """platform_keys: those that have no row."""
        self._database = database
        self._platform_keys = platform_keys
        self._keys: CoherentCache[str, AccessKey] = CoherentCache(
            coherence, TOPIC, row_of=lambda key: key.id
        )

    def known(self, key_id: str) -> AccessKey | None:
        """Return the key of this id if it is in memory, and that is current."""
        return self._keys.known(key_id)

    async def find(self, key_id: str) -> AccessKey | None:
        """Return the key of this id. Raises DatabaseUnavailable."""
        if is_platform_key(key_id):
            return self._platform_keys.find(key_id)
        if not 0 < len(key_id) <= ID_LIMIT or "\0" in key_id:
            return None
        return await self._keys.get(key_id, lambda: self._load(key_id))

    async def _load(self, key_id: str) -> AccessKey | None:
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
        return key
