"""Tickets: one encoding, altered tickets are refused, and each refusal has its code."""

import base64
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.protocol.tickets import (
    Refusal,
    Ticket,
    TicketKind,
    TicketRefused,
    check,
    decode,
    encode,
)
from tests.edgecache.protocol.strategies import fake_sign, tickets

NODE = UUID("0198c0de-0000-7000-8000-000000000001")
HASH = b"\x07" * 32
KEY = b"k" * 32
TICKET = Ticket(
    id=UUID("0198c0de-0000-7000-8000-0000000000ff"),
    node_id=NODE,
    organization_id=1,
    environment_pk=2,
    bucket_id=3,
    sha256=HASH,
    start=0,
    length=1000,
    kind=TicketKind.READ,
    client_prefix="203.0.113.0/24",
    issued_at=1_000_000,
    expires_at=1_000_030,
    key_id="00" * 8,
)


def written(ticket: Ticket) -> str:
    """Return an encoded ticket."""
    return encode(ticket, mac_key=KEY, sign=fake_sign)


@given(tickets())
def test_a_decoded_ticket_equals_the_encoded_one(ticket: Ticket) -> None:
    decoded = decode(written(ticket))
    assert decoded.ticket == ticket
    assert decoded.has_mac_of(KEY)
    signature = fake_sign(decoded.signing_input) if ticket.is_direct else b""
    assert decoded.signature == signature


@given(tickets(), st.data())
def test_altering_any_bit_results_in_another_ticket_or_an_error(
    ticket: Ticket, data: st.DataObject
) -> None:
    text = written(ticket)
    whole = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    altered = base64.urlsafe_b64encode(whole).rstrip(b"=").decode()
    try:
        decoded = decode(altered)
    except TicketRefused:
        return
    assert not decoded.has_mac_of(KEY)


@given(tickets(), st.data())
def test_a_ticket_has_exactly_one_encoding(ticket: Ticket, data: st.DataObject) -> None:
    text = written(ticket)
    place = data.draw(st.integers(0, len(text) - 1))
    character = data.draw(st.characters())
    altered = text[:place] + character + text[place + 1 :]
    try:
        decoded = decode(altered)
    except TicketRefused:
        return
    again = encode(decoded.ticket, mac_key=KEY, sign=lambda _: decoded.signature)
    assert again[:-22] == altered[:-22]
    assert not decoded.has_mac_of(KEY) or altered == text


@given(st.text(max_size=600))
def test_any_text_is_decoded_or_refused(text: str) -> None:
    with pytest.raises(TicketRefused, match=Refusal.MALFORMED):
        decode(text)


@given(st.binary(min_size=150, max_size=300))
def test_any_bytes_are_decoded_or_refused(whole: bytes) -> None:
    text = base64.urlsafe_b64encode(whole).rstrip(b"=").decode()
    try:
        decoded = decode(text)
    except TicketRefused:
        return
    again = encode(decoded.ticket, mac_key=KEY, sign=lambda _: decoded.signature)
    assert again[:-22] == text[:-22]


@pytest.mark.parametrize(
    "alter",
    [
        lambda text: text + "=",
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text + "A",
        lambda text: text + "AAAA",
        lambda text: text[:-4],
        lambda text: "",
        lambda text: text * 1000,
        lambda text: text.replace("-", "+").replace("_", "/") + "+",
    ],
)
def test_padding_whitespace_and_wrong_lengths_are_refused(alter: object) -> None:
    assert callable(alter)
    with pytest.raises(TicketRefused, match=Refusal.MALFORMED):
        decode(alter(written(TICKET)))


def test_a_ticket_fits_into_a_header_and_a_url() -> None:
    longest = replace(TICKET, client_prefix="ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")
    assert len(written(longest)) < 380


@pytest.mark.parametrize(
    "wrong",
    [
        {"client_prefix": "203.0.113.0/24?"},
        {"client_prefix": "1" * 44},
        {"organization_id": -1},
        {"length": 1 << 63},
        {"start": 1 << 62, "length": 1 << 62},
    ],
)
def test_values_out_of_range_are_not_encoded(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="out of its range"):
        written(replace(TICKET, **wrong))  # type: ignore[arg-type] # wrong on purpose


def refusal(
    ticket: Ticket, *, now: float = 1_000_010.0, kind: TicketKind = TicketKind.READ
) -> str | None:
    """Return the error code of a refused check."""
    try:
        check(ticket, node_id=NODE, sha256=HASH, kind=kind, now=now)
    except TicketRefused as refused:
        return refused.code
    return None


def test_a_ticket_is_valid_for_its_node_blob_kind_and_time_only() -> None:
    assert refusal(TICKET) is None
    assert refusal(replace(TICKET, node_id=UUID(int=1))) == Refusal.WRONG_NODE
    assert refusal(replace(TICKET, sha256=b"\x08" * 32)) == Refusal.WRONG_OBJECT
    assert refusal(TICKET, kind=TicketKind.STORE) == Refusal.WRONG_KIND
    assert refusal(TICKET, kind=TicketKind.DELETE) == Refusal.WRONG_KIND
    assert refusal(replace(TICKET, kind=TicketKind.STORE)) == Refusal.WRONG_KIND
    assert refusal(TICKET, now=1_000_029.99) is None
    assert refusal(TICKET, now=1_000_030.0) == Refusal.EXPIRED
    assert refusal(TICKET, now=999_998.0) is None
    assert refusal(TICKET, now=999_997.9) == Refusal.NOT_YET_VALID


def test_a_replication_ticket_allows_another_worker_only_to_read() -> None:
    replication = replace(TICKET, kind=TicketKind.REPLICATE, client_prefix="")
    assert refusal(replication) is None
    assert refusal(replication, kind=TicketKind.STORE) == Refusal.WRONG_KIND
    assert refusal(replication, kind=TicketKind.DELETE) == Refusal.WRONG_KIND


@pytest.mark.parametrize("lifetime", [0, -5, 31, 100_000])
def test_a_signed_ticket_with_too_long_a_lifetime_is_refused(lifetime: int) -> None:
    ticket = replace(TICKET, expires_at=TICKET.issued_at + lifetime)
    assert refusal(ticket, now=TICKET.issued_at) == Refusal.LIVES_TOO_LONG


def test_only_a_client_s_own_reads_are_direct() -> None:
    assert TICKET.is_direct
    assert not replace(TICKET, client_prefix="").is_direct
    assert not replace(TICKET, kind=TicketKind.REPLICATE).is_direct


def test_a_mac_depends_on_the_key_the_ticket_and_the_signature() -> None:
    direct, own = decode(written(TICKET)), decode(written(replace(TICKET, client_prefix="")))
    assert direct.has_mac_of(KEY)
    assert own.has_mac_of(KEY)
    assert not direct.has_mac_of(b"x" * 32)
    assert not replace(direct, mac=own.mac).has_mac_of(KEY)
    assert not replace(direct, mac=direct.mac[:-1]).has_mac_of(KEY)
    assert not replace(direct, mac=b"").has_mac_of(KEY)
    # A client cannot invalidate the signature that the operator is paid for.
    assert not replace(direct, signature=bytes(64)).has_mac_of(KEY)


def test_only_direct_tickets_are_signed() -> None:
    assert len(decode(written(TICKET)).signature) == 64
    assert decode(written(replace(TICKET, client_prefix=""))).signature == b""
    whole = base64.urlsafe_b64decode(written(replace(TICKET, client_prefix="")) + "==")
    longer = base64.urlsafe_b64encode(whole[:-16] + bytes(64) + whole[-16:]).rstrip(b"=").decode()
    with pytest.raises(TicketRefused, match=Refusal.MALFORMED):
        decode(longer)
