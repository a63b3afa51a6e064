"""Hypothesis strategies for values of the protocol."""

import hashlib
from typing import Final

from hypothesis import strategies as st

from edgecache.protocol.tickets import KEY_ID_BYTES, Ticket, TicketKind

NUMBER: Final = st.integers(0, (1 << 62) - 1)
HASH: Final = st.binary(min_size=32, max_size=32)
PREFIX: Final = st.one_of(
    st.just(""),
    st.ip_addresses(v=4).map(lambda address: f"{address}/24"),
    st.ip_addresses(v=6).map(lambda address: f"{address}/48"),
)


def fake_sign(said: bytes) -> bytes:
    """Return 64 bytes that depend on the signed data."""
    return hashlib.sha512(said).digest()


@st.composite
def tickets(draw: st.DrawFn) -> Ticket:
    """Draw any ticket that can be encoded."""
    return Ticket(
        id=draw(st.uuids()),
        node_id=draw(st.uuids()),
        organization_id=draw(NUMBER),
        environment_pk=draw(NUMBER),
        bucket_id=draw(NUMBER),
        sha256=draw(HASH),
        start=draw(NUMBER),
        length=draw(NUMBER),
        kind=draw(st.sampled_from(TicketKind)),
        client_prefix=draw(PREFIX),
        issued_at=draw(NUMBER),
        expires_at=draw(NUMBER),
        key_id=draw(st.binary(min_size=KEY_ID_BYTES, max_size=KEY_ID_BYTES)).hex(),
    )
