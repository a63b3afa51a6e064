"""Checking tickets: cheap checks first, then the MAC, once for each ticket of the brain."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from edgecache.protocol.heartbeats import TicketKey
from edgecache.protocol.tickets import (
    DecodedTicket,
    Refusal,
    Ticket,
    TicketKind,
    TicketRefused,
    check,
    decode,
)
from edgecache.runtime.bounded_cache import BoundedCache
from edgecache.worker.clock import BrainClock

# The brain reads with one ticket many times; decoding it costs a fifth of a small answer.
MAX_VERIFIED_TICKETS: Final = 2048


class Verifier:
    """Admits tickets of the brain for this node.

    A text that was found to be right is remembered until the keys change; node, object, kind and
    time are checked each time. Clients' own tickets are not remembered: they hardly come twice, and
    would push out the brain's, which do.
    """

    def __init__(self, node_id: UUID, clock: BrainClock) -> None:
        """Know no key yet: until the first heartbeat is answered nothing is admitted."""
        self._node_id = node_id
        self._clock = clock
        self._keys: dict[str, bytes] = {}
        self._verified: BoundedCache[str, Ticket] = BoundedCache(MAX_VERIFIED_TICKETS)

    @property
    def is_ready(self) -> bool:
        """True if tickets can be checked."""
        return bool(self._keys) and self._clock.is_known

    def trust(self, keys: Iterable[TicketKey]) -> None:
        """Trust these keys and no others."""
        trusted = {key.kid: key.key for key in keys}
        if trusted != self._keys:
            self._keys = trusted
            self._verified.clear()

    def admit(self, text: str, *, sha256: bytes | None, kind: TicketKind) -> Ticket:
        """Return the ticket that allows this use of this object now.

        sha256: None if it is not known yet; the caller then compares it. Raises TicketRefused.
        """
        ticket = self._verified.get(text)
        if ticket is not None:
            self._check(ticket, sha256, kind)
            return ticket
        decoded = decode(text)
        self._check(decoded.ticket, sha256, kind)
        return self._verify(text, decoded)

    def organization_of(self, text: str) -> int | None:
        """Return the organization of a ticket that the brain made, whatever the ticket allows."""
        try:
            ticket = self._verified.get(text) or self._verify(text, decode(text))
        except TicketRefused:
            return None
        return ticket.organization_id

    def _verify(self, text: str, decoded: DecodedTicket) -> Ticket:
        """Return a ticket that the brain made. Raises TicketRefused."""
        key = self._keys.get(decoded.ticket.key_id)
        if key is None:
            raise TicketRefused(Refusal.UNKNOWN_KEY)
        if not decoded.has_mac_of(key):
            raise TicketRefused(Refusal.WRONG_SIGNATURE)
        if not decoded.ticket.is_direct:
            self._verified.put(text, decoded.ticket)
        return decoded.ticket

    def _check(self, ticket: Ticket, sha256: bytes | None, kind: TicketKind) -> None:
        wanted = ticket.sha256 if sha256 is None else sha256
        check(ticket, node_id=self._node_id, sha256=wanted, kind=kind, now=self._clock.now())
