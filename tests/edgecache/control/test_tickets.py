"""All brains of one secret sign alike; others' tickets are nobody's."""

from dataclasses import replace
from uuid import UUID

import pytest

from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.nodes.tickets import REUSE_S, TicketGrant, TicketSigner
from edgecache.protocol.tickets import Kind, TicketRefused, check

SECRET = "a secret of more than thirty-two characters"
NODE = UUID(int=1)
HASH = bytes(range(32))
LEAVE = TicketGrant(Tenant(3, 4), 5, HASH, 1000)
NOW = 1_800_000_000.0


def test_a_brain_knows_the_tickets_of_another_one_with_the_same_secret() -> None:
    text = TicketSigner(SECRET).sign(Kind.STORE, NODE, LEAVE, now=NOW)

    ticket = TicketSigner(SECRET).verify(text)

    assert (ticket.organization_id, ticket.environment_pk, ticket.bucket_id) == (3, 4, 5)
    assert (ticket.start, ticket.length, ticket.kind) == (0, 1000, Kind.STORE)
    check(ticket, node_id=NODE, sha256=HASH, kind=Kind.STORE, now=NOW)


def test_a_ticket_of_another_secret_is_refused() -> None:
    text = TicketSigner("another secret of that many characters").sign(
        Kind.READ, NODE, LEAVE, now=NOW
    )
    with pytest.raises(TicketRefused, match="ticket_key_unknown"):
        TicketSigner(SECRET).verify(text)


def test_an_altered_ticket_is_refused() -> None:
    text = TicketSigner(SECRET).sign(Kind.READ, NODE, LEAVE, now=NOW)
    altered = text[:60] + ("A" if text[60] != "A" else "B") + text[61:]
    with pytest.raises(TicketRefused):
        TicketSigner(SECRET).verify(altered)


def test_after_a_change_of_the_secret_old_tickets_are_known_but_not_made() -> None:
    old = TicketSigner(SECRET)
    new = TicketSigner("the next secret of that many characters", [SECRET])

    assert new.verify(old.sign(Kind.READ, NODE, LEAVE, now=NOW)).node_id == NODE
    known = new.keys()
    assert [key.kid for key in known] == [new.key_id, old.key_id]
    assert new.verify(new.sign(Kind.READ, NODE, LEAVE, now=NOW)).key_id == new.key_id


def test_the_brains_own_reads_share_a_ticket_for_a_while() -> None:
    signer = TicketSigner(SECRET)
    first = signer.for_own_read(NODE, LEAVE, now=NOW)

    assert signer.for_own_read(NODE, LEAVE, now=NOW + REUSE_S - 1) == first
    later = signer.for_own_read(NODE, LEAVE, now=NOW + REUSE_S)
    assert later != first
    assert signer.verify(later).expires_at > NOW + REUSE_S


def test_another_node_or_blob_gets_another_ticket() -> None:
    signer = TicketSigner(SECRET)
    first = signer.for_own_read(NODE, LEAVE, now=NOW)

    assert signer.for_own_read(UUID(int=2), LEAVE, now=NOW) != first
    assert signer.for_own_read(NODE, replace(LEAVE, sha256=bytes(32)), now=NOW) != first


def test_the_secret_cannot_be_seen_in_a_ticket_or_a_key() -> None:
    signer = TicketSigner(SECRET)
    assert SECRET not in repr(vars(signer))
    assert SECRET.encode() not in signer.keys()[0].public_key
