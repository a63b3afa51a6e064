"""What may go on to a client: right bytes, all of them, whatever the sources gave."""

import hashlib
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgecache.brain import checks
from edgecache.brain.checks import Check, Chunked, Passing, Whole, WrongBytes
from edgecache.brain.delivery import Span

CHUNK = 64
BLOB = os.urandom(64 * 5 + 7)
DIGESTS = b"".join(
    hashlib.sha256(BLOB[start : start + CHUNK]).digest() for start in range(0, len(BLOB), CHUNK)
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHUNK_BYTES", CHUNK)


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
@given(PLANS)
def test_a_whole_that_is_wrong_never_ends(plan: list[tuple[int, int, int]]) -> None:
    check = Whole(hashlib.sha256(BLOB).digest(), len(BLOB))
    out, is_late = moved(check, plan)
    # A lie that leaked leaves the client with less than was announced.
    assert len(out) < len(BLOB) if is_late else out == BLOB


def test_a_passing_range_goes_on_where_it_broke() -> None:
    check = Passing(Span(10, 100))
    assert moved(check, [(30, -1, 7), (0, -1, 1)])[0] == BLOB[10:110]
