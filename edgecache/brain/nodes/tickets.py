"""Signing of tickets, with a key that all brains derive from their shared secret.

Source: RFC 5869 (HKDF), RFC 8032 (Ed25519).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from edgecache.brain.delivery.delivery import Tenant
from edgecache.protocol.heartbeats import PublicKey
from edgecache.protocol.tickets import (
    LIFETIME_LIMIT_S,
    Kind,
    Refusal,
    Ticket,
    TicketRefused,
    decode,
    encode,
    key_id,
)
from platform_site.lib.ids import uuid7

KEY_BYTES: Final = 32
PURPOSE: Final = b"zonal edge cache: tickets, Ed25519, 1"
# A ticket for the brain's own reads is reused until it is this old: signing costs more than
# the rest of a small response.
REUSE_S: Final = 15
REMEMBERED: Final = 50_000


@dataclass(frozen=True, slots=True)
class TicketGrant:
    """What a ticket allows, and for which tenant. length: the cap in bytes."""

    tenant: Tenant
    bucket_id: int
    sha256: bytes
    length: int
    start: int = 0


class TicketSigner:
    """Signs and verifies tickets."""

    def __init__(self, secret: str, previous: Sequence[str] = ()) -> None:
        """secret: ZCACHE_BRAIN_SECRET. previous: earlier ones, whose tickets remain valid."""
        self._key = _derive(secret)
        self._public = {
            key_id(raw): raw for raw in (_raw(key) for key in (self._key, *map(_derive, previous)))
        }
        self.key_id = next(iter(self._public))
        self._reused: OrderedDict[tuple[UUID, bytes], tuple[int, str]] = OrderedDict()

    def keys(self) -> tuple[PublicKey, ...]:
        """Return the public keys for workers, the current one first."""
        return tuple(PublicKey(kid, raw) for kid, raw in self._public.items())

    def sign(
        self, kind: Kind, node_id: UUID, grant: TicketGrant, *, now: float, client_prefix: str = ""
    ) -> str:
        """Return a new encoded ticket, valid for 30 seconds.

        client_prefix: the network of a client that reads from the worker itself; else empty.
        """
        issued_at = int(now)
        ticket = Ticket(
            id=uuid7(),
            node_id=node_id,
            organization_id=grant.tenant.organization_id,
            environment_pk=grant.tenant.environment_pk,
            bucket_id=grant.bucket_id,
            sha256=grant.sha256,
            start=grant.start,
            length=grant.length,
            kind=kind,
            client_prefix=client_prefix,
            issued_at=issued_at,
            expires_at=issued_at + LIFETIME_LIMIT_S,
            key_id=self.key_id,
        )
        return encode(ticket, self._key.sign)

    def for_own_read(self, node_id: UUID, grant: TicketGrant, *, now: float) -> str:
        """Return a ticket for the brain's own reads of a blob, whole or in part.

        grant: of the whole blob. The same ticket serves many reads; none of them has a receipt.
        """
        name = (node_id, grant.sha256)
        known = self._reused.get(name)
        if known is not None and now - known[0] < REUSE_S:
            return known[1]
        made = self.sign(Kind.READ, node_id, grant, now=now)
        self._reused[name] = (int(now), made)
        self._reused.move_to_end(name)
        if len(self._reused) > REMEMBERED:
            self._reused.popitem(last=False)
        return made

    def verify(self, text: str) -> Ticket:
        """Return the decoded ticket after verifying its signature.

        Raises TicketRefused. The caller checks what the ticket allows.
        """
        decoded = decode(text)
        raw = self._public.get(decoded.ticket.key_id)
        if raw is None:
            raise TicketRefused(Refusal.UNKNOWN_KEY)
        try:
            Ed25519PublicKey.from_public_bytes(raw).verify(decoded.signature, decoded.signing_input)
        except InvalidSignature:
            raise TicketRefused(Refusal.WRONG_SIGNATURE) from None
        return decoded.ticket


def _derive(secret: str) -> Ed25519PrivateKey:
    hkdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=PURPOSE)
    return Ed25519PrivateKey.from_private_bytes(hkdf.derive(secret.encode()))


def _raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
