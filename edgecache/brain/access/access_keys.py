"""Access keys of the object API: new ones, and those in use, cached until one changes.

Announced topic: ``access_key`` (its id), when one is created or deleted.
"""

import secrets
import time
from contextlib import suppress
from typing import Final

from cryptography.fernet import InvalidToken

from common.crypto import decrypt
from edgecache.brain.access.platform_keys import PlatformKeys, SigningKey, is_platform_key
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import BrainError
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.coherent_cache import MAX_ENTRIES, CoherentCache
from edgecache.brain.db.database import BrainDatabase
from edgecache.runtime.bounded_cache import BoundedCache

TOPIC: Final = "access_key"
ID_LIMIT: Final = 32
FIND: Final = (
    "SELECT id, organization_id, environment_pk, secret, access FROM brain_accesskey WHERE id = %s"
)
# A key's use is written at most this often by each process.
USED_AGAIN_S: Final = 3600.0
USED: Final = (
    "UPDATE brain_accesskey SET last_used_at = now()"
    " WHERE id = %s AND (last_used_at IS NULL OR last_used_at < now() - interval '50 minutes')"
)

# In the form of AWS's ids, for tools that check it.
ID_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
ID_PREFIX: Final = "ZK"
ID_RANDOM_CHARS: Final = 18
SECRET_BYTES: Final = 30


class AccessKeys:
    """Finds access keys; the cache is used only while it is coherent."""

    def __init__(
        self, database: BrainDatabase, coherence: Coherence, platform_keys: PlatformKeys
    ) -> None:
        """platform_keys: those that have no row."""
        self._database = database
        self._platform_keys = platform_keys
        self._keys: CoherentCache[str, SigningKey] = CoherentCache(
            coherence, TOPIC, row_of=lambda key: key.id
        )
        # When this process wrote a key's use.
        self._used_at: BoundedCache[str, float] = BoundedCache(MAX_ENTRIES)
        self.writes = BackgroundTasks()

    def known(self, key_id: str) -> SigningKey | None:
        """Return the key of this id if it is in memory, and that is current."""
        return self._keys.known(key_id)

    async def find(self, key_id: str) -> SigningKey | None:
        """Return the key of this id. Raises DatabaseUnavailable."""
        if is_platform_key(key_id):
            return self._platform_keys.find(key_id)
        if not 0 < len(key_id) <= ID_LIMIT or "\0" in key_id:
            return None
        return await self._keys.get(key_id, lambda: self._load(key_id))

    def note_use(self, key: SigningKey) -> None:
        """Have written that a key has signed a request, if it was not within the hour."""
        now = time.monotonic()
        used_at = self._used_at.get(key.id)
        if is_platform_key(key.id) or (used_at is not None and now - used_at < USED_AGAIN_S):
            return
        self._used_at.put(key.id, now)
        self.writes.add(self._write_use(key.id))

    async def _write_use(self, key_id: str) -> None:
        with suppress(BrainError):
            await self._database.run(USED, [key_id])

    async def _load(self, key_id: str) -> SigningKey | None:
        row = await self._database.one(FIND, [key_id])
        if row is None:
            return None
        try:
            secret = decrypt(row.secret)
        except InvalidToken:
            return None
        tenant = EnvironmentKey(row.organization_id, row.environment_pk)
        return SigningKey(row.id, tenant, secret, row.access == "write")


def new_pair() -> tuple[str, str]:
    """Return a fresh id and secret."""
    chars = (secrets.choice(ID_ALPHABET) for _ in range(ID_RANDOM_CHARS))
    return ID_PREFIX + "".join(chars), secrets.token_urlsafe(SECRET_BYTES)
