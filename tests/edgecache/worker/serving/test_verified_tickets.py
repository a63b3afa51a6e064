"""The worker's cache of verified tickets."""

import time
from typing import Any
from uuid import UUID, uuid4

import pytest

from edgecache.protocol.tickets import Refusal, TicketKind, TicketRefused
from edgecache.worker.clock import BrainClock
from edgecache.worker.tickets import MAX_VERIFIED_TICKETS, Verifier
from tests.edgecache.worker.brain import CLIENT, NODE, Signer

HASH = b"\x01" * 32


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def signer() -> Signer:
    """Return a brain's key."""
    return Signer()


@pytest.fixture
def uptime() -> Time:
    """Return the machine's clock."""
    return Time()


@pytest.fixture
def verifier(signer: Signer, uptime: Time) -> Verifier:
    """Return a verifier with the brain's key."""
    clock = BrainClock(uptime)
    clock.learn(time.time(), sent=uptime.now, received=uptime.now)
    made = Verifier(NODE, clock)
    made.trust([signer.ticket_key])
    return made


def ticket(signer: Signer, **fields: Any) -> str:
    """Return a ticket to read HASH."""
    return signer.ticket(**{"sha256": HASH, "length": 10, **fields})


def code(
    verifier: Verifier, text: str, sha256: bytes = HASH, kind: TicketKind = TicketKind.READ
) -> str:
    """Return the code of a refusal."""
    with pytest.raises(TicketRefused) as caught:
        verifier.admit(text, sha256=sha256, kind=kind)
    return caught.value.code


def test_the_cache_is_bounded_and_clients_tickets_are_not_cached(
    verifier: Verifier, signer: Signer
) -> None:
    for _ in range(MAX_VERIFIED_TICKETS + 20):
        verifier.admit(ticket(signer, id=uuid4()), sha256=HASH, kind=TicketKind.READ)
    kept = verifier._verified.names()
    assert len(kept) == MAX_VERIFIED_TICKETS
    direct = ticket(signer, client_prefix=CLIENT)
    assert verifier.admit(direct, sha256=HASH, kind=TicketKind.READ).is_direct
    assert verifier._verified.names() == kept


def test_a_cached_ticket_is_still_checked_for_its_request(
    verifier: Verifier, signer: Signer, uptime: Time
) -> None:
    text = ticket(signer)
    verifier.admit(text, sha256=HASH, kind=TicketKind.READ)
    assert code(verifier, text, sha256=b"\x02" * 32) == Refusal.WRONG_OBJECT
    assert code(verifier, text, kind=TicketKind.STORE) == Refusal.WRONG_KIND
    uptime.now += 31
    assert code(verifier, text) == Refusal.EXPIRED


def test_cheap_checks_precede_the_mac(
    verifier: Verifier, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "_keys", {})
    assert code(verifier, ticket(signer, node_id=UUID(int=1))) == Refusal.WRONG_NODE
    assert code(verifier, ticket(signer)) == Refusal.UNKNOWN_KEY


def test_new_keys_clear_the_cache(verifier: Verifier, signer: Signer) -> None:
    text = ticket(signer)
    verifier.admit(text, sha256=HASH, kind=TicketKind.READ)
    verifier.trust([Signer().ticket_key])
    assert code(verifier, text) == Refusal.UNKNOWN_KEY
    verifier.trust([Signer().ticket_key, signer.ticket_key])
    verifier.admit(text, sha256=HASH, kind=TicketKind.READ)


def test_the_verifier_is_not_ready_without_a_clock(signer: Signer) -> None:
    verifier = Verifier(NODE, BrainClock())
    verifier.trust([signer.ticket_key])
    assert not verifier.is_ready


def test_the_verifier_is_not_ready_without_keys(verifier: Verifier) -> None:
    verifier.trust([])
    assert not verifier.is_ready
