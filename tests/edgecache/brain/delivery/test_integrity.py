"""Clients get correct and complete bytes, whatever the sources send."""

import asyncio
import hashlib
import os
import zlib
from unittest.mock import Mock
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgecache.brain.core.blocks import BLOCK_BYTES, EARLIER_BLOCK_BYTES, Blocks
from edgecache.brain.core.values import EnvironmentKey, Span, WorkerSource
from edgecache.brain.delivery.integrity import BlockChecks, WrongBytes
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.delivery.worker_reads import WorkerReads
from edgecache.brain.disk.digests import Digests

pytestmark = pytest.mark.slow

BLOCK = 64
BLOB = os.urandom(64 * 5 + 7)
DIGESTS = [
    hashlib.sha256(BLOB[start : start + BLOCK]).digest() for start in range(0, len(BLOB), BLOCK)
]


def sent(check: BlockChecks, plan: list[tuple[int, int, int]]) -> bytes:
    """Send a blob from sources that fail or alter a byte; the last one is correct.

    plan: how many bytes a source sends, which byte it alters (-1: none), in pieces of which size.

    Returns the bytes that passed.
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
        except WrongBytes:
            pass
        check.change_source()
        if check.position == check.end:
            break
    return out


PLANS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(-1, 326), st.integers(1, 200)), max_size=3
)


@settings(max_examples=400, deadline=None)
@given(PLANS, st.integers(0, 326), st.integers(1, 327))
def test_what_is_sent_is_complete_and_correct(
    plan: list[tuple[int, int, int]], start: int, length: int
) -> None:
    length = min(length, len(BLOB) - start)
    check = BlockChecks(
        lambda number, block: hashlib.sha256(block).digest() == DIGESTS[number],
        BLOCK,
        Span(start, length),
        len(BLOB),
    )
    assert sent(check, plan) == BLOB[start : start + length]


BIG = os.urandom(2 * EARLIER_BLOCK_BYTES + 5)
EARLIER = b"".join(
    hashlib.sha256(BIG[start : start + EARLIER_BLOCK_BYTES]).digest()
    for start in range(0, len(BIG), EARLIER_BLOCK_BYTES)
)


def manifest_of(content: bytes) -> bytes:
    """Return the digests that a body gets when it is received in odd pieces."""
    digests = Digests()
    for start in range(0, len(content), 100_003):
        digests.update(content[start : start + 100_003])
    return digests.manifest().chunks


@pytest.mark.parametrize(
    ("content", "digests"),
    [
        (BIG, manifest_of(BIG)),
        (BIG[: BLOCK_BYTES + 1], manifest_of(BIG[: BLOCK_BYTES + 1])),
        (BIG[:BLOCK_BYTES], manifest_of(BIG[:BLOCK_BYTES])),
        (BIG, EARLIER),
        (BIG[:BLOCK_BYTES], hashlib.sha256(BIG[:BLOCK_BYTES]).digest()),
    ],
    ids=["blocks", "two blocks", "one block", "an earlier release", "its one block"],
)
def test_an_altered_byte_is_found_in_its_block(content: bytes, digests: bytes) -> None:
    blocks = Blocks(digests, len(content))
    last = len(content) - 1
    number, start = last // blocks.block_bytes, last // blocks.block_bytes * blocks.block_bytes
    right = content[start:]
    wrong = right[:-1] + bytes([right[-1] ^ 1])
    for matches in (blocks.has_sha256, blocks.has_crc32c):
        assert matches(number, right)
        assert not matches(number, wrong)
        assert not matches(number + 1, right)


FORGED = bytes(len(BLOB))


@pytest.mark.parametrize(
    ("owner", "is_verified", "is_caught"),
    [(None, False, False), (None, True, True), (7, False, True)],
    ids=["the platform's node", "a bucket with verified reads", "a stranger's node"],
)
def test_bytes_with_a_forged_crc_are_caught(
    owner: int | None, is_verified: bool, is_caught: bool
) -> None:
    delivery = DeliveryPlan(
        tenant=EnvironmentKey(1, 2),
        bucket_id=3,
        sha256=hashlib.sha256(BLOB).digest(),
        size=len(BLOB),
        span=Span(0, len(BLOB)),
        status=200,
        headers=[],
        sources=(WorkerSource(uuid4(), "http://127.0.0.1:1"),),
        is_verified=is_verified,
        crc32=zlib.crc32(FORGED),
    )
    nodes = Mock(get=lambda _id: Mock(organization_id=owner))
    worker_reads = WorkerReads(Mock(), nodes, Mock(), Mock())
    streamer = Streamer(Mock(), worker_reads, Mock(), Mock(), Mock(), on_read=Mock())
    check = asyncio.run(streamer.check_for(delivery))
    if is_caught:
        with pytest.raises(WrongBytes):
            check.accept(FORGED)
    else:
        assert check.accept(FORGED) == FORGED
