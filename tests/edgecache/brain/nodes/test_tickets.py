"""Brains with the same secret accept each other's tickets; tickets of other secrets are refused."""

from dataclasses import replace
from uuid import UUID

import pytest

from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.nodes.tickets import REUSE_S, TicketGrant, TicketSigner
from edgecache.protocol.tickets import TicketKind, TicketRefused, check, decode, encode

SECRET = "a secret of more than thirty-two characters"
NODE = UUID(int=1)
HASH = bytes(range(32))
GRANT = TicketGrant(EnvironmentKey(3, 4), 5, HASH, 1000)
NOW = 1_800_000_000.0


def test_a_brain_accepts_tickets_of_another_brain_with_the_same_secret() -> None:
    text = TicketSigner(SECRET).sign(TicketKind.STORE, NODE, GRANT, now=NOW)

    ticket = TicketSigner(SECRET).verify(text)

    assert (ticket.organization_id, ticket.environment_pk, ticket.bucket_id) == (3, 4, 5)
    assert (ticket.start, ticket.length, ticket.kind) == (0, 1000, TicketKind.STORE)
    check(ticket, node_id=NODE, sha256=HASH, kind=TicketKind.STORE, now=NOW)


def test_a_ticket_of_another_secret_is_refused() -> None:
    text = TicketSigner("another secret of that many characters").sign(
        TicketKind.READ, NODE, GRANT, now=NOW
    )
    with pytest.raises(TicketRefused, match="ticket_key_unknown"):
        TicketSigner(SECRET).verify(text)


def test_an_altered_ticket_is_refused() -> None:
    text = TicketSigner(SECRET).sign(TicketKind.READ, NODE, GRANT, now=NOW)
    altered = text[:60] + ("A" if text[60] != "A" else "B") + text[61:]
    with pytest.raises(TicketRefused):
        TicketSigner(SECRET).verify(altered)


def test_after_a_secret_rotation_old_tickets_are_accepted_but_not_issued() -> None:
    old = TicketSigner(SECRET)
    new = TicketSigner("the next secret of that many characters", [SECRET])

    assert new.verify(old.sign(TicketKind.READ, NODE, GRANT, now=NOW)).node_id == NODE
    known = new.node_keys(NODE)
    assert known[1:] == old.node_keys(NODE)
    assert [key.kid for key in known] == [new.key_id, old.key_id]
    assert new.verify(new.sign(TicketKind.READ, NODE, GRANT, now=NOW)).key_id == new.key_id


def test_the_brain_s_own_reads_share_a_ticket() -> None:
    signer = TicketSigner(SECRET)
    first = signer.for_own_read(NODE, GRANT, now=NOW)

    assert signer.for_own_read(NODE, GRANT, now=NOW + REUSE_S - 1) == first
    later = signer.for_own_read(NODE, GRANT, now=NOW + REUSE_S)
    assert later != first
    assert signer.verify(later).expires_at > NOW + REUSE_S


def test_another_node_or_blob_gets_another_ticket() -> None:
    signer = TicketSigner(SECRET)
    first = signer.for_own_read(NODE, GRANT, now=NOW)

    assert signer.for_own_read(UUID(int=2), GRANT, now=NOW) != first
    assert signer.for_own_read(NODE, replace(GRANT, sha256=bytes(32)), now=NOW) != first


def test_tickets_and_keys_do_not_contain_the_secret() -> None:
    signer = TicketSigner(SECRET)
    assert SECRET not in repr(vars(signer))
    assert SECRET.encode() not in signer.node_keys(NODE)[0].key
    assert repr(signer.node_keys(NODE)[0].key) not in repr(signer.node_keys(NODE))


@pytest.mark.parametrize("prefix", ["", "203.0.113.0/24"])
def test_each_node_has_its_own_key(prefix: str) -> None:
    signer = TicketSigner(SECRET)
    mine, other = (signer.node_keys(node)[0].key for node in (NODE, UUID(int=2)))
    text = signer.sign(TicketKind.READ, NODE, GRANT, now=NOW, client_prefix=prefix)
    assert mine != other
    assert decode(text).has_mac_of(mine)
    assert not decode(text).has_mac_of(other)


def test_a_node_cannot_forge_a_ticket_that_the_brain_pays_for() -> None:
    signer = TicketSigner(SECRET)
    made = signer.sign(TicketKind.READ, NODE, GRANT, now=NOW, client_prefix="203.0.113.0/24")
    ticket, key = signer.verify(made), signer.node_keys(NODE)[0].key
    forged = encode(replace(ticket, length=2000), mac_key=key, sign=lambda _: bytes(64))
    assert decode(forged).has_mac_of(key)
    with pytest.raises(TicketRefused, match="ticket_signature_wrong"):
        signer.verify(forged)
    # The signature cannot be added to a ticket without one either.
    own = signer.sign(TicketKind.READ, NODE, GRANT, now=NOW)
    assert not signer.verify(own).is_direct
