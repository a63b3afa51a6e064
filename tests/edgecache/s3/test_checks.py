"""What may go on to a client: right bytes, all of them, whatever the sources gave."""

import asyncio
import hashlib
import os
import zlib
from unittest.mock import Mock
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgecache.brain.delivery import integrity
from edgecache.brain.delivery.delivery import Delivery, Source, Span, Tenant
from edgecache.brain.delivery.integrity import (
    Check,
    Chunked,
    Crc32,
    Digest,
    Passing,
    Sha256,
    Whole,
    WrongBytes,
)
from edgecache.brain.delivery.streaming import Mover

CHUNK = 64
BLOB = os.urandom(64 * 5 + 7)
DIGESTS = b"".join(
    hashlib.sha256(BLOB[start : start + CHUNK]).digest() for start in range(0, len(BLOB), CHUNK)
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrity, "CHUNK_BYTES", CHUNK)


def moved(check: Check, plan: list[tuple[int, int, int]]) -> tuple[bytes, bool]:
    """Move a blob through sources that each end or lie somewhere; the last one is right.

    plan: how many bytes a source gives, which byte it alters (-1: none), in pieces of which size.
    Gives what went on, and whether a lie was found too late.
    """
    out = b""
    for length, altered, step in [*plan, (len(BLOB), -1, 50)]:
        content = bytearray(BLOB)
        if 0 <= altered < len(content):
            content[altered] ^= 1
        stop = min(check.position + length, check.end)
        try:
            while check.position < stop:
                start = check.position
                out += check.take(bytes(content[start : min(start + step, stop)]))
        except WrongBytes as wrong:
            if wrong.has_leaked:
                return out, True
            check.start_over()
        else:
            check.restart()
        if check.position == check.end:
            break
    return out, False


PLANS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(-1, 326), st.integers(1, 200)), max_size=3
)


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(PLANS, st.integers(0, 326), st.integers(1, 327))
def test_chunks_let_nothing_wrong_through_and_lose_nothing(
    plan: list[tuple[int, int, int]], start: int, length: int
) -> None:
    length = min(length, len(BLOB) - start)
    check = Chunked(DIGESTS, Span(start, length), len(BLOB))
    out, is_late = moved(check, plan)
    assert (out, is_late) == (BLOB[start : start + length], False)


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(PLANS, st.sampled_from([Sha256(hashlib.sha256(BLOB).digest()), Crc32(zlib.crc32(BLOB))]))
def test_a_whole_that_is_wrong_never_ends(plan: list[tuple[int, int, int]], digest: Digest) -> None:
    check = Whole(digest.afresh(), len(BLOB))
    out, is_late = moved(check, plan)
    # A lie that leaked leaves the client with less than was announced.
    assert len(out) < len(BLOB) if is_late else out == BLOB


def test_a_passing_range_goes_on_where_it_broke() -> None:
    check = Passing(Span(10, 100))
    assert moved(check, [(30, -1, 7), (0, -1, 1)])[0] == BLOB[10:110]


LIE = bytes(len(BLOB))


def caught(owner: int | None, *, is_verified: bool = False) -> int:
    """Count, of 300 times, how often a lie with the blob's CRC-32 is found when a node tells it.

    owner: the organization whose node it is; None for the platform's own.
    """
    delivery = Delivery(
        tenant=Tenant(1, 2),
        bucket_id=3,
        key="key",
        generation=4,
        sha256=hashlib.sha256(BLOB).digest(),
        size=len(BLOB),
        span=Span(0, len(BLOB)),
        status=200,
        headers=[],
        sources=(Source(uuid4(), "http://127.0.0.1:1"),),
        is_verified=is_verified,
        crc32=zlib.crc32(LIE),
    )
    nodes = Mock(get=lambda _id: Mock(organization_id=owner))
    mover = Mover(Mock(), nodes, Mock(), Mock(), Mock(), on_read=Mock())
    found = 0
    for _ in range(300):
        check = asyncio.run(mover.check_of(delivery))
        try:
            assert check.take(LIE) == LIE
        except WrongBytes:
            found += 1
    return found


def test_a_strangers_node_cannot_forge_what_the_platforms_own_is_trusted_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(integrity, "CHUNK_BYTES", len(BLOB))
    assert caught(owner=7) == 300
    assert caught(owner=None, is_verified=True) == 300
    # A sample of what our own nodes say is held against SHA-256, too.
    assert 0 < caught(owner=None) < 100
