"""Messages: encoding and decoding are inverse, and an error names the wrong fields."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.protocol import names
from edgecache.protocol.fields import FieldReader, MalformedMessage, parse
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
        message.read(parse(json.dumps(value).encode()))
    return [error.field for error in caught.value.errors]


@given(MESSAGES)
def test_a_decoded_message_equals_the_encoded_one(message: Any) -> None:
    assert type(message).read(parse(json.dumps(message.as_json()).encode())) == message


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


def test_all_wrong_and_unknown_fields_are_named_together() -> None:
    value = BEAT | {"load": "high", "capacity": 4, "problems": ["fine", 7]}
    del value["sequence"]
    assert sorted(wrong_fields(Heartbeat, value)) == [
        "capacity",
        "load",
        "problems[1]",
        "sequence",
    ]


@pytest.mark.parametrize(
    ("message", "body"),
    [
        (Heartbeat, {f"unknown{number}": 1 for number in range(1000)}),
        (Heartbeat, {"problems": [1] * 16} | {f"unknown{number}": 1 for number in range(99)}),
        (Receipts, {"receipts": [{f"unknown{number}": 1 for number in range(99)}] * 500}),
        (Inventory, {"removed": ["x"] * 1000}),
    ],
)
def test_of_a_message_that_is_wrong_everywhere_some_fields_are_named(
    message: Any, body: dict[str, Any]
) -> None:
    """A hostile node's message must not hold up the brain for each of its fields."""
    with pytest.raises(MalformedMessage) as refused:
        message.read(FieldReader(body))
    assert 20 <= len(refused.value.errors) < 60


def test_a_field_inside_a_list_is_named_by_its_path() -> None:
    line = {"ticket": "t", "bytes_served": 1, "served_at": 2}
    value = {"receipts": [line, line | {"bytes_served": -1, "tip": 5}]}
    assert sorted(wrong_fields(Receipts, value)) == ["receipts[1].bytes_served", "receipts[1].tip"]
    assert wrong_fields(Receipts, {"receipts": [line, 5]})[0] == "receipts[1]"


@pytest.mark.parametrize(
    "pair",
    [["aa", 5], [("a" * 63) + "G", 5], ["a" * 64, -1], ["a" * 64, True], ["a" * 64], "ab", None],
)
def test_an_inventory_with_a_malformed_pair_is_refused(pair: Any) -> None:
    value = Inventory("a", 1, full=True).as_json() | {"added": [["a" * 64, 5], pair]}
    assert wrong_fields(Inventory, value) == ["added[1]"]


def test_an_inventory_page_has_a_limit() -> None:
    full = ["a" * 64] * (names.INVENTORY_PAGE + 1)
    value = Inventory("a", 1, full=False).as_json() | {"removed": full}
    assert wrong_fields(Inventory, value) == ["removed"]


def test_a_ticket_key_has_a_name_and_32_bytes() -> None:
    key = TicketKey("0" * 16, b"k" * 32)
    answer = HeartbeatAnswer(1.0, (key,), "active", False, 0, 10.0).as_json()
    for wrong in ({"kid": "x" * 16}, {"key": "%%%"}, {"key": "AAAA"}):
        message = {**answer, "keys": [{**answer["keys"][0], **wrong}]}
        assert wrong_fields(HeartbeatAnswer, message) == ["keys[0]"]


def test_unknown_fields_of_a_response_are_ignored() -> None:
    said = {"unknown": [], "hint": "new"}
    assert InventoryAnswer.read(FieldReader(said)) == InventoryAnswer()


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b'{"a": NaN}', b"[" * 100_000, b'{"a": 1}x', b"1e999"]
)
def test_invalid_json_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        InventoryAnswer.read(parse(raw))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_json_value_is_decoded_or_refused(value: Any) -> None:
    with pytest.raises(MalformedMessage):
        Heartbeat.read(FieldReader(value))


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_must_be_finite(value: float) -> None:
    with pytest.raises(MalformedMessage):
        Heartbeat.read(FieldReader(BEAT | {"load": value}))
