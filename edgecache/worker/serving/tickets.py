"""Looking at tickets: cheap checks first, the signature last, and that once for each ticket."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from edgecache.protocol.heartbeats import PublicKey
from edgecache.protocol.tickets import Kind, Refusal, Ticket, TicketRefused, check, decode
from edgecache.worker.clock import BrainClock

# The brain reads with one ticket many times; verifying a signature costs more than a small answer.
REMEMBERED: Final = 2048


class Verifier:
    """Admits tickets of the brain for this node.

    A text that was found to be signed is remembered, signature included, until the keys change;
    node, object, kind and time are checked each time. Clients' own tickets are not: they hardly
    come twice, and would push out the brain's, which do.
    """

    def __init__(self, node_id: UUID, clock: BrainClock) -> None:
        """Know no key yet: until the first heartbeat is answered nothing is admitted."""
        self._node_id = node_id
        self._clock = clock
        self._keys: dict[str, Ed25519PublicKey] = {}
        self._known: frozenset[PublicKey] = frozenset()
        self._verified: OrderedDict[str, Ticket] = OrderedDict()

    @property
    def is_ready(self) -> bool:
        """Whether a ticket could be admitted at all."""
        return bool(self._keys) and self._clock.is_known

    def trust(self, keys: Iterable[PublicKey]) -> None:
        """Trust these keys and no others."""
        keys = frozenset(keys)
        if keys == self._known:
            return
        self._known = keys
        self._keys = {key.kid: Ed25519PublicKey.from_public_bytes(key.public_key) for key in keys}
        self._verified.clear()

    def admit(self, text: str, *, sha256: bytes, kind: Kind) -> Ticket:
        """Give the ticket that allows this kind of thing with this object now.

        Raises TicketRefused.
        """
        ticket = self._verified.get(text)
        if ticket is not None:
            self._check(ticket, sha256, kind)
            return ticket
        decoded = decode(text)
        self._check(decoded.ticket, sha256, kind)
        key = self._keys.get(decoded.ticket.key_id)
        if key is None:
            raise TicketRefused(Refusal.UNKNOWN_KEY)
        try:
            key.verify(decoded.signature, decoded.signing_input)
        except InvalidSignature:
            raise TicketRefused(Refusal.WRONG_SIGNATURE) from None
        if not decoded.ticket.is_direct:
            self._remember(text, decoded.ticket)
        return decoded.ticket

    def _check(self, ticket: Ticket, sha256: bytes, kind: Kind) -> None:
        check(ticket, node_id=self._node_id, sha256=sha256, kind=kind, now=self._clock.now())

    def _remember(self, text: str, ticket: Ticket) -> None:
        self._verified[text] = ticket
        if len(self._verified) > REMEMBERED:
            self._verified.popitem(last=False)
