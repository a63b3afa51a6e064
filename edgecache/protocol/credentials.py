"""How a worker and the brain know each other: the node's secret, and the proof of an endpoint.

The brain keeps only ``secret_hash``; so that is also the key of the proof, and a stolen table can't
be turned into a credential.
"""

import hashlib
import hmac
import re
from typing import Final
from uuid import UUID

NONCE: Final = re.compile(r"[A-Za-z0-9_-]{16,128}", re.ASCII)
_BEARER: Final = re.compile(
    r"[Bb]earer +([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([A-Za-z0-9_-]{16,128})", re.ASCII
)


def secret_hash(secret: str) -> bytes:
    """Return the hash of a node's secret. The secret is random, so a fast hash will do."""
    return hashlib.sha256(secret.encode()).digest()


def authorization(node_id: UUID, secret: str) -> str:
    """Return the value of the Authorization header of a worker's calls to the brain."""
    return f"Bearer {node_id}.{secret}"


def parse_authorization(value: str) -> tuple[UUID, str] | None:
    """Read that header: node and secret, None when it has another form."""
    match = _BEARER.fullmatch(value)
    return (UUID(match[1]), match[2]) if match else None


def proof(secret_sha256: bytes, node_id: UUID, nonce: str) -> str:
    """Return what ``GET /prove?nonce=`` answers: only the holder of the node's secret can.

    secret_sha256: ``secret_hash`` of the node's secret. nonce: fresh, of the form ``NONCE``.
    """
    message = b"zonal-prove-1\0" + node_id.bytes + nonce.encode("ascii")
    return hmac.new(secret_sha256, message, hashlib.sha256).hexdigest()
