"""Batches: there is one encoding, and nothing else is accepted."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.protocol import batches

BLOBS = st.lists(st.binary(max_size=40), min_size=1, max_size=5, unique=True)


def by_hash(bodies: list[bytes]) -> dict[bytes, bytes]:
    """Return bodies by their SHA-256."""
    return {hashlib.sha256(body).digest(): body for body in bodies}


@given(BLOBS)
def test_a_decoded_batch_equals_the_encoded_one(bodies: list[bytes]) -> None:
    index, message = batches.encode(by_hash(bodies))

    decoded, blobs = batches.decode(message)

    assert decoded == index
    assert {name: bytes(data) for name, data in blobs.items()} == by_hash(bodies)
    assert len(message) <= batches.MESSAGE_BYTES


@given(BLOBS, st.integers(1, 50))
def test_a_batch_of_another_length_is_malformed(bodies: list[bytes], count: int) -> None:
    _, message = batches.encode(by_hash(bodies))

    for wrong in (message + b"x" * count, message[: -count or None][: len(message) - count]):
        with pytest.raises(batches.MalformedBatch):
            batches.decode(wrong)


def test_a_batch_has_a_limited_number_of_blobs() -> None:
    _, message = batches.encode(by_hash([b"%d" % n for n in range(batches.BATCH_BLOBS + 1)]))

    for wrong in (message, b"", b"\0\0"):
        with pytest.raises(batches.MalformedBatch):
            batches.decode(wrong)
