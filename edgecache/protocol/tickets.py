"""Tickets: permission to read or write certain bytes on one worker, for at most 30 seconds.

A ticket is a bearer capability in one canonical form: two texts are the same ticket only if they
are equal. Its text is base64url (without padding) of a fixed head, the client's prefix, the brain's
signature if the ticket is direct, and a MAC over all of that.

The MAC (HMAC-SHA-256 of 128 bits) is made with a key that only the brain and that one node know, so
a worker checks a ticket in microseconds, and another node cannot make one. The signature (Ed25519)
is for the brain: the worker redeems direct tickets in receipts, and could make the MAC itself. The
MAC covers the signature, so that a client cannot alter it and thus void the operator's receipt.
Signing is left to the caller: this module needs only the standard library.
"""

import hashlib
import hmac
import struct
from base64 import urlsafe_b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

LIFETIME_LIMIT_S: Final = 30
# A ticket's brain may have a clock ahead of the one that answered the last heartbeat.
LEEWAY_S: Final = 2
SIGNATURE_BYTES: Final = 64
MAC_BYTES: Final = 16
MAC_KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 8
# One ticket may be read again (retries, ranges that overlap), though it counts once.
REPLAY_FACTOR: Final = 4

_VERSION: Final = 2
_CONTEXT: Final = b"zonal-ticket\0"
_MAC_CONTEXT: Final = b"zonal-ticket-mac\0"
# version, kind, key, id, node, organization, environment, bucket, hash, start, length, issued,
# expires, bytes of the client's prefix
_HEAD: Final = struct.Struct(">BB8s16s16sQQQ32sQQQQB")
_PREFIX_LIMIT: Final = 43
_PREFIX_CHARACTERS: Final = frozenset("0123456789abcdef:./")
_MIN_CHARS: Final = (_HEAD.size + MAC_BYTES) * 4 // 3
_MAX_CHARS: Final = (_HEAD.size + _PREFIX_LIMIT + SIGNATURE_BYTES + MAC_BYTES) * 4 // 3 + 1
_ALPHABET: Final = bytes.maketrans(b"-_", b"+/")
_NUMBER_LIMIT: Final = 1 << 63


class TicketKind(StrEnum):
    """What a ticket allows.

    read: for a client, or for the brain on a client's behalf. store: PUT of the whole blob, at most
    ``length`` bytes. delete. replicate: another worker reads the blob. store_batch: of small blobs
    in one message (``batches``), named by its index.
    """

    READ = "read"
    STORE = "store"
    DELETE = "delete"
    REPLICATE = "replicate"
    STORE_BATCH = "store_batch"


_KINDS: Final = tuple(TicketKind)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}


class Refusal(StrEnum):
    """Why a ticket is refused: a stable code."""

    MALFORMED = "ticket_malformed"
    UNKNOWN_KEY = "ticket_key_unknown"
    WRONG_SIGNATURE = "ticket_signature_wrong"
    WRONG_NODE = "ticket_of_another_node"
    WRONG_OBJECT = "ticket_of_another_object"
    WRONG_KIND = "ticket_of_another_kind"
    EXPIRED = "ticket_expired"
    NOT_YET_VALID = "ticket_not_yet_valid"
    LIVES_TOO_LONG = "ticket_lives_too_long"
    OUT_OF_RANGE = "ticket_range_exceeded"
    USED_UP = "ticket_used_up"


class TicketRefused(Exception):
    """A ticket does not allow what was asked; ``code`` says why, nothing quotes the ticket."""

    def __init__(self, code: Refusal) -> None:
        super().__init__(str(code))
        self.code = code


@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission for bytes ``start`` to ``start + length - 1`` of one blob on one worker.

    length: the cap; for a store the greatest size. client_prefix: the network of the client that
    reads from the worker itself, as ``203.0.113.0/24``; empty when the brain or a worker reads.
    issued_at, expires_at: whole Unix seconds by the brain's clock. key_id: of the brain's signing
    key; the MAC's key has the same name.
    """

    id: UUID
    node_id: UUID
    organization_id: int
    environment_pk: int
    bucket_id: int
    sha256: bytes
    start: int
    length: int
    kind: TicketKind
    client_prefix: str
    issued_at: int
    expires_at: int
    key_id: str

    @property
    def is_direct(self) -> bool:
        """True if a client reads from the worker itself: only that is receipted."""
        return self.kind is TicketKind.READ and bool(self.client_prefix)

    @property
    def end(self) -> int:
        """The first byte after the allowed ones."""
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class DecodedTicket:
    """A ticket whose MAC and signature are not checked yet. signature: empty if not direct."""

    ticket: Ticket
    body: bytes
    signature: bytes
    mac: bytes

    @property
    def signing_input(self) -> bytes:
        """The bytes that the signature is over."""
        return _CONTEXT + self.body

    def has_mac_of(self, key: bytes) -> bool:
        """True if the MAC was made with this key."""
        return hmac.compare_digest(_mac(self.body + self.signature, key), self.mac)


def key_id(public_key: bytes) -> str:
    """Return the name of a public key (32 raw bytes): 16 hexadecimal digits of its hash."""
    return hashlib.sha256(public_key).digest()[:KEY_ID_BYTES].hex()


def encode(ticket: Ticket, *, mac_key: bytes, sign: Callable[[bytes], bytes]) -> str:
    """Return the text of a ticket.

    mac_key: the node's. sign: returns the 64 bytes of the signature over its argument; it is not
    called for a ticket that is not direct.
    Raises ValueError for a value that does not fit into a ticket: the caller's mistake.
    """
    prefix = ticket.client_prefix.encode("ascii")
    if len(prefix) > _PREFIX_LIMIT or not _is_writable(ticket):
        raise ValueError("a ticket's field is out of its range")
    body = _HEAD.pack(
        _VERSION,
        _NUMBERS[ticket.kind],
        bytes.fromhex(ticket.key_id),
        ticket.id.bytes,
        ticket.node_id.bytes,
        ticket.organization_id,
        ticket.environment_pk,
        ticket.bucket_id,
        ticket.sha256,
        ticket.start,
        ticket.length,
        ticket.issued_at,
        ticket.expires_at,
        len(prefix),
    )
    body += prefix
    signed = body + sign(_CONTEXT + body) if ticket.is_direct else body
    return urlsafe_b64encode(signed + _mac(signed, mac_key)).rstrip(b"=").decode("ascii")


def decode(text: str) -> DecodedTicket:
    """Read a ticket, strictly and at a bounded cost; MAC and signature are the caller's to check.

    Raises TicketRefused unless the text is exactly what ``encode`` writes.
    """
    whole = _bytes(text)
    version, kind, key, *fields, prefix_length = _HEAD.unpack(whole[: _HEAD.size])
    body_length = _HEAD.size + prefix_length
    body, signature, mac = whole[:body_length], whole[body_length:-MAC_BYTES], whole[-MAC_BYTES:]
    if version != _VERSION or kind >= len(_KINDS) or len(body) != body_length:
        raise TicketRefused(Refusal.MALFORMED)
    ticket_id, node_id, organization, environment, bucket, sha256, *numbers = fields
    start, length, issued_at, expires_at = numbers
    ticket = Ticket(
        id=UUID(bytes=ticket_id),
        node_id=UUID(bytes=node_id),
        organization_id=organization,
        environment_pk=environment,
        bucket_id=bucket,
        sha256=sha256,
        start=start,
        length=length,
        kind=_KINDS[kind],
        client_prefix=body[_HEAD.size :].decode("latin-1"),
        issued_at=issued_at,
        expires_at=expires_at,
        key_id=key.hex(),
    )
    signature_length = SIGNATURE_BYTES if ticket.is_direct else 0
    is_whole = len(whole) == body_length + signature_length + MAC_BYTES
    if not is_whole or not _is_writable(ticket):
        raise TicketRefused(Refusal.MALFORMED)
    return DecodedTicket(ticket, body, signature, mac)


def check(ticket: Ticket, *, node_id: UUID, sha256: bytes, kind: TicketKind, now: float) -> None:
    """Refuse a ticket that is not for this node, this blob, this kind, or not for now.

    now: Unix seconds by the brain's clock, as well as the caller knows it. The reading side accepts
    ``replicate`` where it accepts ``read``. Raises TicketRefused.
    """
    if ticket.node_id != node_id:
        raise TicketRefused(Refusal.WRONG_NODE)
    if ticket.sha256 != sha256:
        raise TicketRefused(Refusal.WRONG_OBJECT)
    if ticket.kind is not kind and not (
        ticket.kind is TicketKind.REPLICATE and kind is TicketKind.READ
    ):
        raise TicketRefused(Refusal.WRONG_KIND)
    if not 0 < ticket.expires_at - ticket.issued_at <= LIFETIME_LIMIT_S:
        raise TicketRefused(Refusal.LIVES_TOO_LONG)
    if now >= ticket.expires_at:
        raise TicketRefused(Refusal.EXPIRED)
    if now < ticket.issued_at - LEEWAY_S:
        raise TicketRefused(Refusal.NOT_YET_VALID)


def _mac(signed: bytes, key: bytes) -> bytes:
    return hmac.digest(key, _MAC_CONTEXT + signed, "sha256")[:MAC_BYTES]


def _bytes(text: str) -> bytes:
    if not _MIN_CHARS <= len(text) <= _MAX_CHARS or not text.isascii():
        raise TicketRefused(Refusal.MALFORMED)
    plain = text.encode("ascii")
    if b"+" in plain or b"/" in plain:
        raise TicketRefused(Refusal.MALFORMED)
    try:
        whole = a2b_base64(plain.translate(_ALPHABET) + b"=" * (-len(plain) % 4), strict_mode=True)
    except Base64Error as error:
        raise TicketRefused(Refusal.MALFORMED) from error
    # Decoding drops bits of the last character, which therefore has one canonical value only.
    if urlsafe_b64encode(whole).rstrip(b"=") != plain:
        raise TicketRefused(Refusal.MALFORMED)
    return whole


def _is_writable(ticket: Ticket) -> bool:
    numbers = (
        ticket.organization_id,
        ticket.environment_pk,
        ticket.bucket_id,
        ticket.start,
        ticket.length,
        ticket.start + ticket.length,
        ticket.issued_at,
        ticket.expires_at,
    )
    return (
        min(numbers) >= 0
        and max(numbers) < _NUMBER_LIMIT
        and _PREFIX_CHARACTERS.issuperset(ticket.client_prefix)
    )
