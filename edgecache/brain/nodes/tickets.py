"""Signing tickets: all brains have the same keys, derived from the secret they share.

Each node has its own MAC key, derived here and sent with the responses to its heartbeats. It is
not derived from the node's credential: the table of nodes has the credential's hash, so a reader
of the table could forge tickets.
Source: RFC 5869 (HKDF), RFC 8032 (Ed25519).
"""

import hmac
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from common.ids import uuid7
from edgecache.brain.core.values import EnvironmentKey
from edgecache.http.addresses import parse_address
from edgecache.protocol.heartbeats import TicketKey
from edgecache.protocol.tickets import (
    LIFETIME_LIMIT_S,
    Refusal,
    Ticket,
    TicketKind,
    TicketRefused,
    decode,
    encode,
    key_id,
)
from edgecache.runtime.bounded_cache import BoundedCache

KEY_BYTES: Final = 32
SIGNING: Final = b"zonal edge cache: tickets, Ed25519, 1"
MAC: Final = b"zonal edge cache: tickets, HMAC, 1"
# A ticket for the brain's own reads is used again until it is this old: signing costs more than
# all the rest of a small answer.
REUSE_S: Final = 15
MAX_REUSED_TICKETS: Final = 50_000

CLIENT_PREFIX_BITS: Final = {4: 24, 6: 64}


@dataclass(frozen=True, slots=True)
class TicketGrant:
    """What a ticket allows, and for which tenant. length: the limit in bytes."""

    tenant: EnvironmentKey
    bucket_id: int
    sha256: bytes
    length: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of one secret. mac: the nodes' MAC keys are derived from it."""

    signing: Ed25519PrivateKey
    public: Ed25519PublicKey
    mac: bytes

    def node_key(self, node_id: UUID) -> bytes:
        """Return the MAC key of a node's tickets."""
        return hmac.digest(self.mac, node_id.bytes, "sha256")


class TicketSigner:
    """Makes tickets, and recognizes those that were made with its secrets."""

    def __init__(self, secret: str, previous: Sequence[str] = ()) -> None:
        """secret: ZCACHE_BRAIN_SECRET. previous: earlier ones, whose tickets are still valid."""
        self._keys = dict(map(_derive, (secret, *previous)))
        self.key_id = next(iter(self._keys))
        self._current = self._keys[self.key_id]
        self._reused: BoundedCache[tuple[UUID, bytes], tuple[int, str]] = BoundedCache(
            MAX_REUSED_TICKETS
        )

    def node_keys(self, node_id: UUID) -> tuple[TicketKey, ...]:
        """Return the MAC keys that a node must accept, the current one first."""
        return tuple(TicketKey(kid, keys.node_key(node_id)) for kid, keys in self._keys.items())

    def sign(
        self,
        kind: TicketKind,
        node_id: UUID,
        grant: TicketGrant,
        *,
        now: float,
        client_prefix: str = "",
    ) -> str:
        """Return the text of a new ticket, valid for 30 seconds.

        client_prefix: the network of a client that reads from the worker itself, or empty.
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
        return encode(
            ticket, mac_key=self._current.node_key(node_id), sign=self._current.signing.sign
        )

    def for_own_read(self, node_id: UUID, grant: TicketGrant, *, now: float) -> str:
        """Return a ticket with which the brain itself reads a blob, whole or in part.

        grant: of the whole blob. The same ticket serves many reads; none is receipted.
        """
        name = (node_id, grant.sha256)
        known = self._reused.get(name)
        if known is not None and now - known[0] < REUSE_S:
            return known[1]
        made = self.sign(TicketKind.READ, node_id, grant, now=now)
        self._reused.put(name, (int(now), made))
        return made

    def verify(self, text: str) -> Ticket:
        """Return the ticket of a text that a brain made.

        What the ticket says is the caller's to check. Raises TicketRefused.
        """
        decoded = decode(text)
        ticket = decoded.ticket
        keys = self._keys.get(ticket.key_id)
        if keys is None:
            raise TicketRefused(Refusal.UNKNOWN_KEY)
        if not decoded.has_mac_of(keys.node_key(ticket.node_id)):
            raise TicketRefused(Refusal.WRONG_SIGNATURE)
        if ticket.is_direct:
            # The node that redeems it can make the MAC itself, but not the signature.
            try:
                keys.public.verify(decoded.signature, decoded.signing_input)
            except InvalidSignature:
                raise TicketRefused(Refusal.WRONG_SIGNATURE) from None
        return ticket


def client_prefix(address: str) -> str:
    """Return the network that a ticket is valid for: IPv4 /24, IPv6 /64."""
    client = parse_address(address)
    if client is None:
        raise ValueError(address)
    return str(ipaddress.ip_network((client, CLIENT_PREFIX_BITS[client.version]), strict=False))


def _derive(secret: str) -> tuple[str, KeySet]:
    """Return the name and the keys of a secret."""

    def derived(purpose: bytes) -> bytes:
        hkdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose)
        return hkdf.derive(secret.encode())

    signing = Ed25519PrivateKey.from_private_bytes(derived(SIGNING))
    public = signing.public_key()
    name = key_id(public.public_bytes(Encoding.Raw, PublicFormat.Raw))
    return name, KeySet(signing, public, derived(MAC))
