"""Paths, credentials, proofs and ranges have exactly one form."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.protocol.credentials import (
    NONCE,
    authorization,
    parse_authorization,
    proof,
    secret_hash,
)
from edgecache.protocol.names import object_file, object_path, parse_object_path, worker_path
from edgecache.protocol.ranges import RangeNotSatisfiable, requested
from tests.edgecache.protocol.strategies import HASH

NODE = UUID("0198c0de-0000-7000-8000-000000000001")


@given(HASH)
def test_a_path_names_one_blob(sha256: bytes) -> None:
    assert parse_object_path(object_path(sha256)) == sha256
    assert object_file(sha256) == f"{sha256.hex()[:2]}/{sha256.hex()}"


@pytest.mark.parametrize(
    "path",
    [
        "/o/",
        "/o/" + "a" * 63,
        "/o/" + "a" * 65,
        "/o/" + "A" * 64,
        "/o/" + "g" * 64,
        "/o/" + "a" * 62 + "..",
        "/o/../" + "a" * 61,
        "/o//" + "a" * 64,
        "/o/" + "\u0660" * 64,
        "//o/" + "a" * 64,
        "o/" + "a" * 64,
        "/o/" + "a" * 64 + "/",
        "/o/ " + "a" * 63,
    ],
)
def test_a_path_of_another_form_names_no_blob(path: str) -> None:
    assert parse_object_path(path) is None


@given(st.text(max_size=80))
def test_any_path_is_parsed_or_refused(path: str) -> None:
    sha256 = parse_object_path("/o/" + path)
    assert sha256 is None or object_path(sha256) == "/o/" + path


def test_a_worker_s_paths_match_the_interface() -> None:
    assert worker_path(NODE, "heartbeat") == f"/v1/workers/{NODE}/heartbeat"


def test_a_parsed_credential_equals_the_original() -> None:
    secret = "s" * 43
    assert parse_authorization(authorization(NODE, secret)) == (NODE, secret)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        f"Basic {NODE}.{'s' * 43}",
        f"Bearer {NODE}{'s' * 43}",
        f"Bearer {NODE}.short",
        f"Bearer {NODE}.{'s' * 500}",
        f"Bearer {str(NODE).upper()}.{'s' * 43}",
        f"Bearer {NODE}.{'s' * 43}\n",
    ],
)
def test_a_credential_of_another_form_is_refused(value: str) -> None:
    assert parse_authorization(value) is None


def test_a_proof_depends_on_the_secret_the_node_and_the_nonce() -> None:
    key = secret_hash("one")
    proofs = {
        proof(key, NODE, "n" * 22),
        proof(secret_hash("two"), NODE, "n" * 22),
        proof(key, UUID(int=5), "n" * 22),
        proof(key, NODE, "m" * 22),
    }
    assert len(proofs) == 4
    assert proof(key, NODE, "n" * 22) in proofs


@pytest.mark.parametrize(
    "nonce", ["", "n" * 15, "n" * 129, "n" * 20 + "\n", "é" * 22, "n" * 20 + " "]
)
def test_a_nonce_has_one_form(nonce: str) -> None:
    assert NONCE.fullmatch(nonce) is None


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("", None),
        ("bytes=0-0", (0, 1)),
        ("bytes=0-99", (0, 100)),
        ("bytes=0-1000", (0, 100)),
        ("bytes=99-", (99, 1)),
        ("bytes=-1", (99, 1)),
        ("bytes=-1000", (0, 100)),
        ("Bytes=5-6", (5, 2)),
        ("bytes= 5-6 ", (5, 2)),
        ("bytes=6-5", None),
        ("bytes=-", None),
        ("bytes=0-0,5-6", None),
        ("bytes=a-b", None),
        ("bytes=+1-2", None),
        ("bytes=\u0660-\u0661", None),
        ("items=0-5", None),
        ("bytes=" + "9" * 20 + "-", None),
    ],
)
def test_a_single_byte_range_is_parsed(
    header: str | None, expected: tuple[int, int] | None
) -> None:
    assert requested(header, 100) == expected


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=100-", 100), ("bytes=-0", 100), ("bytes=-5", 0), ("bytes=0-", 0)]
)
def test_a_range_after_the_end_is_unsatisfiable(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable):
        requested(header, size)


@given(st.text(max_size=40), st.integers(0, 1 << 40))
def test_any_range_header_results_in_a_range_within_the_object(header: str, size: int) -> None:
    try:
        found = requested("bytes=" + header, size)
    except RangeNotSatisfiable:
        return
    if found is not None:
        start, length = found
        assert 0 <= start < start + length <= size
