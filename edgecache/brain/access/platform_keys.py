"""The platform's own keys, with which it presigns URLs for its members.

They have no row and no stored secret: a key's id names its owner and permission, and its secret is
derived from the shared secret and the id. No secret leaves the brain, so such a key signs only the
URLs that ``presigned_urls`` has made.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from common.crypto import keyed_digest
from edgecache.brain.core.values import EnvironmentKey

# Ids of access keys begin with capitals.
PREFIX: Final = "zp-"
# A leaked URL is then of little use, whatever lifetime it claims.
LIMIT_S: Final = 3600
FINGERPRINT_CHARS: Final = 8
_ID: Final = re.compile(
    rf"{PREFIX}([0-9a-f]{{{FINGERPRINT_CHARS}}})-([1-9][0-9]{{0,18}})-([1-9][0-9]{{0,18}})-(read|write)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An access key. secret: in clear text, as signatures need it."""

    id: str
    tenant: EnvironmentKey
    secret: str = field(repr=False)
    can_write: bool


class PlatformKeys:
    """Makes the platform's keys, and finds them by their ids."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """secrets: the shared secret, then earlier ones that are still accepted."""
        self._secrets = {_fingerprint(secret): secret for secret in reversed(secrets)}
        self._current = _fingerprint(secrets[0])

    def key_of(self, tenant: EnvironmentKey, *, can_write: bool) -> SigningKey:
        access = "write" if can_write else "read"
        environment = f"{tenant.organization_id}-{tenant.environment_pk}"
        return self._key(f"{PREFIX}{self._current}-{environment}-{access}", tenant, self._current)

    def find(self, key_id: str) -> SigningKey | None:
        """Return the key of an id, None if the id is not a platform key's."""
        match = _ID.fullmatch(key_id)
        if match is None or match[1] not in self._secrets:
            return None
        return self._key(key_id, EnvironmentKey(int(match[2]), int(match[3])), match[1])

    def _key(self, key_id: str, tenant: EnvironmentKey, fingerprint: str) -> SigningKey:
        secret = keyed_digest(self._secrets[fingerprint], "key that presigns", key_id).hex()
        return SigningKey(key_id, tenant, secret, can_write=key_id.endswith("write"))


def is_platform_key(key_id: str) -> bool:
    """True if an id has the form of the platform's."""
    return key_id.startswith(PREFIX)


def _fingerprint(secret: str) -> str:
    return keyed_digest(secret, "name of the keys that presign").hex()[:FINGERPRINT_CHARS]
