"""Messages: encoding and decoding are inverse, and an error names the wrong fields."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.protocol import names
from edgecache.protocol.fields import MalformedMessage, decode, encode
from edgecache.protocol.heartbeats import Heartbeat, HeartbeatAnswer, TicketKey
from edgecache.protocol.inventories import HeldBlob, Inventory, InventoryAnswer
from edgecache.protocol.jobs import Job, JobDone, JobKind, Jobs, JobsDone, JobSource
from edgecache.protocol.receipts import ReceiptLine, Receipts, ReceiptsAnswer, RefusedReceipt
from tests.edgecache.protocol.strategies import HASH, NUMBER

WORD = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=30)
FINITE = st.floats(0, 1e12)
KEY = st.binary(min_size=32, max_size=32).map(lambda raw: TicketKey(raw[:8].hex(), raw))
HELD = st.builds(HeldBlob, HASH, NUMBER)
SOURCE = st.builds(JobSource, WORD, WORD)
MESSAGES = st.one_of(
    st.builds(
        Heartbeat,
        incarnation=WORD,
        sequence=NUMBER,
        used_bytes=NUMBER,
        object_count=NUMBER,
        capacity_bytes=NUMBER.map(lambda size: size + 1),
        evictions=NUMBER,
        load=FINITE,
        endpoint=st.none() | WORD,
        problems=st.lists(WORD, max_size=3).map(tuple),
    ),
    st.builds(
        HeartbeatAnswer,
        now=FINITE.map(lambda now: now + 1),
        keys=st.lists(KEY, max_size=3).map(tuple),
        status=WORD,
        wants_inventory=st.booleans(),
        jobs=NUMBER,
        interval_s=st.floats(0.05, 300),
    ),
    st.builds(
        Inventory,
        incarnation=WORD,
        sequence=NUMBER,
        full=st.booleans(),
        added=st.lists(HELD, max_size=3).map(tuple),
        removed=st.lists(HASH, max_size=3).map(tuple),
        page=NUMBER,
        last=st.booleans(),
    ),
    st.builds(InventoryAnswer, st.lists(HASH, max_size=3).map(tuple)),
    st.builds(
        Receipts, st.lists(st.builds(ReceiptLine, WORD, NUMBER, NUMBER), max_size=3).map(tuple)
    ),
    st.builds(
        ReceiptsAnswer,
        st.lists(st.uuids(), max_size=3).map(tuple),
        st.lists(st.builds(RefusedReceipt, st.integers(0, 499), WORD, st.uuids()), max_size=3).map(
            tuple
        ),
    ),
    st.builds(
        Jobs,
        st.lists(
            st.builds(
                Job,
                NUMBER,
                st.sampled_from(JobKind),
                HASH,
                NUMBER,
                st.lists(SOURCE, max_size=2).map(tuple),
            ),
            max_size=3,
        ).map(tuple),
    ),
    st.builds(
        JobsDone, st.lists(st.builds(JobDone, NUMBER, st.booleans(), WORD), max_size=3).map(tuple)
    ),
)
BEAT: dict[str, Any] = {
    "incarnation": "a",
    "sequence": 1,
    "used_bytes": 2,
    "object_count": 3,
    "capacity_bytes": 4,
    "evictions": 5,
    "load": 0.5,
    "problems": [],
}


def wrong_fields(message: type[Any], value: Any) -> list[str]:
    """Return the names of the wrong fields."""
    with pytest.raises(MalformedMessage) as caught:
        decode(json.dumps(value).encode(), message)
    return [error.field for error in caught.value.errors]


@given(MESSAGES)
def test_a_decoded_message_equals_the_encoded_one(message: Any) -> None:
    assert decode(encode(message), type(message)) == message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sequence", -1),
        ("sequence", 1.0),
        ("sequence", True),
        ("sequence", "1"),
        ("sequence", 1 << 63),
        ("used_bytes", None),
        ("capacity_bytes", 0),
        ("load", -0.1),
        pytest.param("load", 10**400, id="load-of-400-digits"),
        ("load", True),
        ("load", "0.5"),
        ("incarnation", 7),
        ("incarnation", "x" * 37),
        ("incarnation", "a\0b"),
        ("problems", "draining"),
        ("problems", ["x"] * 17),
        ("endpoint", 5),
    ],
)
def test_the_wrong_field_is_named(name: str, value: Any) -> None:
    assert wrong_fields(Heartbeat, BEAT | {name: value}) == [name]


def test_an_unknown_and_a_missing_field_are_named() -> None:
    with pytest.raises(MalformedMessage, match="is not a field"):
        decode(json.dumps(BEAT | {"capacity": 4}).encode(), Heartbeat)
    assert wrong_fields(Heartbeat, BEAT | {"capacity": 4}) == ["capacity"]
    assert wrong_fields(Heartbeat, {**BEAT, "problems": ["fine", 7]}) == ["problems[1]"]
    with pytest.raises(MalformedMessage, match="sequence: is required"):
        decode(b'{"incarnation": "a"}', Heartbeat)


def test_of_two_fields_of_one_name_the_last_counts() -> None:
    raw = json.dumps(BEAT).encode().replace(b'"load"', b'"load": "high", "load"')
    assert wrong_fields(Heartbeat, json.loads(raw) | {"load": "high"}) == ["load"]
    with pytest.raises(MalformedMessage):
        decode(raw, Heartbeat)


@pytest.mark.parametrize(
    ("message", "body"),
    [
        (Heartbeat, {f"unknown{number}": 1 for number in range(1000)}),
        (Heartbeat, {"x" * 100_000: 1}),
        (Heartbeat, {"problems": ["x" * 100_000]}),
        (Receipts, {"receipts": [{" - at `$" + "y" * 99_999: 1}] * 500}),
        (Inventory, {"removed": ["x"] * 1000}),
    ],
)
def test_the_error_of_a_message_that_is_wrong_everywhere_is_short(
    message: Any, body: dict[str, Any]
) -> None:
    """A hostile node's message must not hold up the brain for each of its fields."""
    with pytest.raises(MalformedMessage) as refused:
        decode(json.dumps(body).encode(), message)
    assert len(refused.value.errors) == 1
    assert len(str(refused.value)) < 600


def test_a_field_inside_a_list_is_named_by_its_path() -> None:
    line = {"ticket": "t", "bytes_served": 1, "served_at": 2}
    for wrong, name in ({"bytes_served": -1}, "bytes_served"), ({"tip": 5}, "tip"):
        value = {"receipts": [line, line | wrong]}
        assert wrong_fields(Receipts, value) == [f"receipts[1].{name}"]
    assert wrong_fields(Receipts, {"receipts": [line, 5]}) == ["receipts[1]"]


HASH_TEXT = b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "pair",
    [
        ["aa", 5],
        ["a" * 63 + "%", 5],
        [HASH_TEXT, -1],
        [HASH_TEXT, True],
        [HASH_TEXT, 5.0],
        [HASH_TEXT],
        "ab",
        None,
    ],
)
def test_an_inventory_with_a_malformed_pair_is_refused(pair: Any) -> None:
    value = {"incarnation": "a", "sequence": 1, "full": True, "added": [[HASH_TEXT, 5], pair]}
    assert wrong_fields(Inventory, value)[0].startswith("added[1]")


def test_a_held_blob_is_a_pair_and_no_more() -> None:
    value = {"incarnation": "a", "sequence": 1, "full": True, "added": [[HASH_TEXT, 5, 6]]}
    assert len(wrong_fields(Inventory, value)) == 1


def test_an_inventory_page_has_a_limit() -> None:
    full = [HASH_TEXT] * (names.INVENTORY_PAGE + 1)
    value = {"incarnation": "a", "sequence": 1, "full": False, "removed": full}
    assert wrong_fields(Inventory, value) == ["removed"]


def test_a_ticket_key_has_a_name_and_32_bytes() -> None:
    key = TicketKey("0" * 16, b"k" * 32)
    answer = json.loads(encode(HeartbeatAnswer(1.0, (key,), "active", False, 0, 10.0)))
    for wrong, name in (
        ({"kid": "x" * 16}, "kid"),
        ({"key": "%%%"}, "key"),
        ({"key": "AAAA"}, "key"),
    ):
        message = {**answer, "keys": [{**answer["keys"][0], **wrong}]}
        assert wrong_fields(HeartbeatAnswer, message) == [f"keys[0].{name}"]
    assert "kkkk" not in repr(key)


def test_unknown_fields_of_a_response_are_ignored() -> None:
    assert decode(b'{"unknown": [], "hint": "new"}', InventoryAnswer) == InventoryAnswer()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff",
        b'{"a": NaN}',
        b"[" * 100_000,
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": 1}x',
        b"1e999",
        b'{"unknown": ["\xff"]}',
        b'{"unknown": ["\\ud800"]}',
    ],
)
def test_invalid_json_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(raw, InventoryAnswer)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_json_value_is_decoded_or_refused(value: Any) -> None:
    with pytest.raises(MalformedMessage):
        decode(json.dumps(value).encode(), Heartbeat)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_must_be_finite(value: float) -> None:
    with pytest.raises(MalformedMessage):
        decode(json.dumps(BEAT | {"load": value}).encode(), Heartbeat)
