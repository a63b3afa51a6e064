"""Clients get correct bytes, all of them, whatever the sources send."""

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
    ChunkCheck,
    Crc32,
    Digest,
    IntegrityCheck,
    NoCheck,
    Sha256,
    WholeCheck,
    WrongBytes,
)
from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.delivery.worker_reads import WorkerReads

CHUNK = 64
BLOB = os.urandom(64 * 5 + 7)
DIGESTS = b"".join(
    hashlib.sha256(BLOB[start : start + CHUNK]).digest() for start in range(0, len(BLOB), CHUNK)
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrity, "CHUNK_BYTES", CHUNK)


def sent(check: IntegrityCheck, plan: list[tuple[int, int, int]]) -> tuple[bytes, bool]:
    """Send a blob from sources that break off or alter a byte; the last one is correct.

    plan: how many bytes a source sends, which byte it alters (-1: none), in pieces of which size.
    Returns what was let through, and whether wrong bytes were found too late.
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
                out += check.accept(bytes(content[start : min(start + step, stop)]))
        except WrongBytes as wrong:
            if wrong.has_leaked:
                return out, True
            check.reset()
        else:
            check.change_source()
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
def test_checked_chunks_are_complete_and_correct(
    plan: list[tuple[int, int, int]], start: int, length: int
) -> None:
    length = min(length, len(BLOB) - start)
    check = ChunkCheck(DIGESTS, Span(start, length), len(BLOB))
    out, is_late = sent(check, plan)
    assert (out, is_late) == (BLOB[start : start + length], False)


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(PLANS, st.sampled_from([Sha256(hashlib.sha256(BLOB).digest()), Crc32(zlib.crc32(BLOB))]))
def test_a_wrong_blob_never_arrives_complete(
    plan: list[tuple[int, int, int]], digest: Digest
) -> None:
    check = WholeCheck(digest.fresh(), len(BLOB))
    out, is_late = sent(check, plan)
    # After wrong bytes leaked, the client gets fewer bytes than announced.
    assert len(out) < len(BLOB) if is_late else out == BLOB


def test_an_unchecked_range_continues_where_it_broke_off() -> None:
    check = NoCheck(Span(10, 100))
    assert sent(check, [(30, -1, 7), (0, -1, 1)])[0] == BLOB[10:110]


FORGED = bytes(len(BLOB))


def caught(owner: int | None, *, is_verified: bool = False) -> int:
    """Return how often, of 300 times, other bytes with the expected CRC-32 are detected.

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
        crc32=zlib.crc32(FORGED),
    )
    nodes = Mock(get=lambda _id: Mock(organization_id=owner))
    worker_reads = WorkerReads(Mock(), nodes, Mock(), Mock())
    streamer = Streamer(Mock(), worker_reads, Mock(), Mock(), on_read=Mock())
    found = 0
    for _ in range(300):
        check = asyncio.run(streamer.check_for(delivery))
        try:
            assert check.accept(FORGED) == FORGED
        except WrongBytes:
            found += 1
    return found


def test_a_foreign_node_is_always_checked_against_sha256(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(integrity, "CHUNK_BYTES", len(BLOB))
    assert caught(owner=7) == 300
    assert caught(owner=None, is_verified=True) == 300
    # Of the platform's own nodes a share is checked against SHA-256, too.
    assert 0 < caught(owner=None) < 100
