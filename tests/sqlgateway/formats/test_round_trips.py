"""Random values of the built-in types: what an answer holds can be sent back and is the same.

PostgreSQL is the judge: it compares the value that it made from our text with the one it makes from
the answer.
"""

import ipaddress
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sqlgateway.support import Caller
from tests.sqlgateway.transfer.test_imports import send
from tests.sqlgateway.transfer.test_streams import stream

# A connection serves all examples of a test.
SAME_CALLER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

# PostgreSQL's text holds every character but NUL; half of a surrogate pair is none.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
DIGITS = st.text("0123456789", min_size=1, max_size=40)
SPECIAL = ["NaN", "Infinity", "-Infinity"]


def single(value: float) -> str:
    """Return the text of a number that float4 holds."""
    return repr(struct.unpack("f", struct.pack("f", value))[0])


def moment(year: int, month: int, day: int, second: int, micro: int) -> str:
    """Return a timestamp's text; years up to 0 are before Christ."""
    era = " BC" if year <= 0 else ""
    shown = 1 - year if year <= 0 else year
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{micro:06}"
    return f"{shown:04}-{month:02}-{day:02} {clock}{era}"


def network(number: int, length: int) -> str:
    """Return the text of a network whose host bits are zero."""
    return str(ipaddress.ip_network((number >> (32 - length) << (32 - length), length)))


def whole(bits: int) -> st.SearchStrategy[str]:
    """Return the texts of a signed integer's values."""
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(str)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
MOMENTS = st.builds(
    moment,
    st.sampled_from([-4711, -43, 0, 1, 1582, 1970, 2026, 9999, 10000, 294275]),
    st.integers(1, 12),
    st.integers(1, 28),
    st.integers(0, 86_399),
    st.integers(0, 999_999),
) | st.sampled_from(["infinity", "-infinity", "294276-12-31 23:59:59.999999"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    # jsonb writes numbers without an exponent: larger ones would come back as integers.
    | st.floats(-1e15, 1e15)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)

TYPES: dict[str, st.SearchStrategy[str]] = {
    "int2": whole(16),
    "int4": whole(32),
    "int8": whole(64),
    "float4": st.floats(-3e38, 3e38).map(single) | st.sampled_from([*SPECIAL, "1e-45", "-0"]),
    "float8": FLOATS.map(repr) | st.sampled_from([*SPECIAL, "5e-324", "1.7976931348623157e308"]),
    "numeric": st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), DIGITS, DIGITS)
    | st.sampled_from([*SPECIAL, "9" * 1000, "0." + "0" * 500 + "1"]),
    "text": TEXTS,
    "varchar": TEXTS,
    "bytea": st.binary(max_size=40).map(lambda value: "\\x" + value.hex()),
    "timestamp": MOMENTS,
    "timestamptz": MOMENTS.map(lambda text: text if "inf" in text else text + "+00"),
    "date": MOMENTS.map(lambda text: text if "inf" in text else text[: text.index(" ")])
    | st.sampled_from(["5874897-12-31", "4714-11-24 BC"]),
    "time": st.sampled_from(["24:00:00", "00:00:00", "23:59:59.999999"]),
    "timetz": st.sampled_from(["24:00:00-15:59:59", "00:00:00+15:59:59", "12:00:00.000001+05:30"]),
    "interval": st.builds(
        "{} mons {} days {} microseconds".format,
        st.integers(-(2**31) + 1, 2**31 - 1),
        st.integers(-(2**31) + 1, 2**31 - 1),
        st.integers(-(2**52), 2**52),
    ),
    "uuid": st.uuids().map(str),
    "inet": st.ip_addresses().map(str),
    "macaddr": st.binary(min_size=6, max_size=6).map(lambda value: value.hex(":")),
    "bit varying": st.text("01", max_size=70),
    "money": whole(64).map(lambda text: f"{text[:-2] or '0'}.{text[-2:].replace('-', '0'):0>2}"),
    "point": st.builds("({!r},{!r})".format, FLOATS, FLOATS),
    "int8range": st.builds("[{},{}]".format, st.integers(-9, 0), st.integers(1, 9))
    | st.sampled_from(["empty", "(,)"]),
    "oid": st.integers(0, 2**32 - 1).map(str),
    "pg_lsn": st.builds("{:X}/{:X}".format, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    "tsvector": st.lists(st.text("abcé'\\", min_size=1, max_size=5), max_size=4).map(
        lambda words: " ".join(
            "'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words
        )
    ),
}


POINTS = st.builds("({!r},{!r})".format, FLOATS, FLOATS)


def listed(opening: str, closing: str) -> st.SearchStrategy[str]:
    """Return the texts of figures of several points."""
    points = st.lists(POINTS, min_size=1, max_size=4)
    return points.map(lambda found: opening + ",".join(found) + closing)


def ranges(*texts: str) -> st.SearchStrategy[str]:
    """Return the texts of ranges."""
    return st.sampled_from([*texts, "empty", "(,)"])


def multiranges(*texts: str) -> st.SearchStrategy[str]:
    """Return the texts of several ranges at once."""
    return st.lists(st.sampled_from([*texts, "(,)"]), max_size=3).map(
        lambda found: "{" + ",".join(found) + "}"
    )


INTEGERS = ("[-5,7)", "[8,8]", "(,0]", "[2147483646,2147483647)")
NUMBERS = ("[-0.5,7.25)", "(1e30,)", "[1.10,1.10]")
DAYS = ("[2026-02-28,2026-03-01)", "(,4714-11-24 BC]", "[infinity,infinity]")
TIMES = ('["4713-01-01 00:00:00 BC","294276-12-31 23:59:59.999999"]', "(-infinity,2026-01-01)")
ZONED = ('["2026-01-01 12:00:00+05:30","2026-01-02 00:00:00+00")', "[infinity,)")

OTHER_TYPES: dict[str, st.SearchStrategy[str]] = {
    "bool": st.sampled_from(["true", "false"]),
    "bpchar": TEXTS,
    "char(5)": st.text("aé ", max_size=5),
    '"char"': st.sampled_from(["a", "", "\\303"]),
    "name": st.text("aé\"' ", max_size=20),
    "cidr": st.builds(network, st.integers(0, 2**32 - 1), st.integers(0, 32))
    | st.ip_addresses(v=6).map(str),
    "macaddr8": st.binary(min_size=8, max_size=8).map(lambda value: value.hex(":")),
    "bit(9)": st.text("01", min_size=9, max_size=9),
    "xid8": st.integers(0, 2**64 - 1).map(str),
    "jsonpath": st.sampled_from(
        ["$", "strict $.a[*]", '$."é"[0 to last] ? (@ > 1 && @ like_regex "^a")', "$.a.double()"]
    ),
    "tsquery": st.sampled_from(["", "'a' & !'b'", "'é' <-> 'c':*AB | 'd'", "'it''s' <3> 'x y'"]),
    "line": st.builds("{{{!r},1,{!r}}}".format, FLOATS, FLOATS),
    "lseg": st.builds("[{},{}]".format, POINTS, POINTS),
    "box": st.builds("{},{}".format, POINTS, POINTS),
    "circle": st.builds("<{},{!r}>".format, POINTS, st.floats(0, 1e300)),
    "path": listed("[", "]") | listed("(", ")"),
    "polygon": listed("(", ")"),
    "int4range": ranges(*INTEGERS),
    "numrange": ranges(*NUMBERS),
    "daterange": ranges(*DAYS),
    "tsrange": ranges(*TIMES),
    "tstzrange": ranges(*ZONED),
    "int4multirange": multiranges(*INTEGERS),
    "int8multirange": multiranges(*INTEGERS, "[9223372036854775806,9223372036854775807)"),
    "nummultirange": multiranges(*NUMBERS),
    "datemultirange": multiranges(*DAYS),
    "tsmultirange": multiranges(*TIMES),
    "tstzmultirange": multiranges(*ZONED),
}


def assert_survives(alice: Caller, values: dict[str, str]) -> None:
    """Send a value of each type back as it was answered; PostgreSQL says if it is the same."""
    made = [f"${number}::text::{name}" for number, name in enumerate(values, 1)]
    answered = alice.sql(f"SELECT {', '.join(made)}", list(values.values()), rows="arrays").rows[0]
    count = len(values)
    # Compared as text, since point has no =; PostgreSQL writes each value in one way only.
    same = ", ".join(
        f"(${number}::text::{name})::text = (${number + count}::{name})::text"
        for number, name in enumerate(values, 1)
    )
    # A text for each parameter: a number's type would be inferred from its JSON.
    sent = [value if isinstance(value, str) else repr(value) for value in answered]
    judged = alice.sql(f"SELECT {same}", [*values.values(), *sent], rows="arrays").rows[0]
    wrong = [
        (name, values[name], value)
        for name, value, is_same in zip(values, answered, judged, strict=True)
        if not is_same
    ]
    assert not wrong


@SAME_CALLER
@given(values=st.fixed_dictionaries(TYPES))
def test_a_value_of_each_type_survives(alice: Caller, values: dict[str, str]) -> None:
    assert_survives(alice, values)


@SAME_CALLER
@given(values=st.fixed_dictionaries(OTHER_TYPES))
def test_a_value_of_each_other_type_survives(alice: Caller, values: dict[str, str]) -> None:
    assert_survives(alice, values)


# Of each base type: arrays of domains of domains, and arrays of domains over arrays.
BASES = {**TYPES, **OTHER_TYPES}
DOMAINS = "".join(
    f"CREATE DOMAIN d{number} AS {name}; CREATE DOMAIN dd{number} AS d{number};"
    f" CREATE DOMAIN a{number} AS dd{number}[];"
    for number, name in enumerate(BASES)
)
# Made of the texts of their elements; a cast of text[] would go through the whole array's text.
MADE = "array(SELECT made::{type} FROM unnest(${n}::text[]) AS made)"
FORMS = (
    MADE.replace("{type}", "{name}"),
    MADE.replace("{type}", "dd{i}"),
    "array[" + MADE.replace("{type}", "dd{i}") + "::a{i}]",
)
LISTS = st.fixed_dictionaries(
    {name: st.lists(st.none() | values, max_size=3) for name, values in BASES.items()}
)


@pytest.fixture
def domains(alice: Caller) -> Caller:
    """Return Alice with domains over every type."""
    assert alice.sql(DOMAINS).status == 200
    return alice


def columns(form: str) -> str:
    """Return a column of arrays for each type; the parameters are their elements as texts."""
    made = enumerate(BASES)
    return ", ".join(form.format(n=i + 1, i=i, name=name) + f" AS c{i}" for i, name in made)


@settings(SAME_CALLER, max_examples=20)
@given(lists=LISTS)
def test_arrays_of_domains_are_as_arrays_of_their_base_types(
    domains: Caller, lists: dict[str, list[str | None]]
) -> None:
    texts = [lists[name] for name in BASES]
    plain, of_domains, nested = (
        domains.sql(f"SELECT {columns(form)}", texts, rows="arrays").rows[0] for form in FORMS
    )
    assert of_domains == plain
    assert nested == [[array] for array in plain]
    same = "({made})::text = (${sent}::{type}[])::text"
    sent = ", ".join(
        same.format(made=form.format(n=i + 1, i=i), sent=i + 1 + at * len(BASES), type=f"{of}{i}")
        for at, (of, form) in enumerate((("dd", FORMS[1]), ("a", FORMS[2])), 1)
        for i in range(len(BASES))
    )
    judged = domains.sql(f"SELECT {sent}", [*texts, *of_domains, *nested], rows="arrays").rows[0]
    wrong = [name for name, is_same in zip([*BASES, *BASES], judged, strict=True) if not is_same]
    assert not wrong, [(name, lists[name]) for name in wrong]


@settings(SAME_CALLER, max_examples=10)
@given(lists=LISTS)
def test_arrays_are_the_same_in_every_stream(
    domains: Caller, lists: dict[str, list[str | None]]
) -> None:
    arrow = pytest.importorskip("pyarrow")
    kept = ", ".join(f"p{i} {name}[], d{i} dd{i}[]" for i, name in enumerate(BASES))
    every = [name for i in range(len(BASES)) for name in (f"p{i}", f"d{i}")]
    made = ", ".join(
        form.format(n=i + 1, i=i, name=name) for i, name in enumerate(BASES) for form in FORMS[:2]
    )
    domains.sql(f"DROP TABLE IF EXISTS kept, again; CREATE TABLE kept ({kept})")
    domains.sql("CREATE TABLE again (LIKE kept)")
    assert (
        domains.sql(f"INSERT INTO kept SELECT {made}", [lists[name] for name in BASES]).status
        == 200
    )
    (in_json,) = domains.sql("TABLE kept").rows
    as_text = f"SELECT {', '.join(f'{name}::text' for name in every)} FROM"
    (in_text,) = domains.sql(f"{as_text} kept").rows

    # Not by splitlines(), which knows more ends of lines than NDJSON.
    _, in_ndjson, _, _ = stream(domains, "TABLE kept", format="ndjson").text.split("\n")
    body = b"".join(stream(domains, "TABLE kept", format="arrow").pieces)
    in_csv = b"".join(stream(domains, "TABLE kept", format="csv").pieces)

    assert json.loads(in_ndjson) == in_json
    assert arrow.ipc.open_stream(body).read_all().to_pylist() == [in_text]
    assert send(domains, in_csv, table="again").status == 200
    assert domains.sql(f"{as_text} again").rows == [in_text]


@settings(SAME_CALLER, max_examples=50)
@given(values=st.lists(st.none() | JSON, max_size=4))
def test_json_in_arrays_of_domains_survives(alice: Caller, values: list[Any]) -> None:
    alice.sql("CREATE DOMAIN doc AS jsonb; CREATE DOMAIN paper AS doc")
    texts = [json.dumps(value) for value in values]
    assert alice.value("SELECT $1::text[]::paper[]", [texts]) == values
    objects = [{"value": value} for value in values]
    assert alice.value("SELECT $1::paper[]", [objects]) == objects


def test_a_number_in_an_array_of_a_domain_may_have_a_point(alice: Caller) -> None:
    made = "CREATE DOMAIN posint AS int CHECK (VALUE > 0); CREATE DOMAIN more AS posint"
    assert alice.sql(f"{made}; CREATE DOMAIN many AS more[]").status == 200
    assert alice.value("SELECT $1::more[]", [[2.0, None, 3]]) == [2, None, 3]
    assert alice.value("SELECT $1::many", [[[2.0], [3]]]) == [[2], [3]]
    assert alice.value("SELECT $1::many[]", [[[2.0], [3, 4]]]) == [[2], [3, 4]]
    assert alice.value("SELECT $1::more", [4.0]) == 4
    box = "(1,1),(0,0)"
    assert alice.value("SELECT $1::box[]", [[box, None, box]]) == [box, None, box]


def test_domains_of_domains_without_end_are_text(alice: Caller) -> None:
    """Neither the server's catalogue nor the gateway's stack is read to any depth."""
    made = "CREATE DOMAIN d0 AS int;" + "".join(
        f"CREATE DOMAIN d{i} AS d{i - 1}[];" for i in range(1, 100)
    )
    assert alice.sql(made).status == 200
    assert alice.value("SELECT array[NULL]::d20[]") == [None]
    assert alice.value("SELECT array[array[NULL]::d98]::d99") == [[None]]


@pytest.mark.parametrize("text", ["<a/>", '<a b="é">&amp;<![CDATA[<]]></a>', "text &lt; only", ""])
def test_xml_survives_where_the_server_has_it(alice: Caller, text: str) -> None:
    if alice.sql("SELECT xml '<a/>'").status == 200:
        assert_survives(alice, {"xml": text})
    else:
        # The bundled server is built without libxml.
        assert alice.sql("SELECT $1::xml", [text]).body["sqlstate"] == "0A000"


@SAME_CALLER
@given(value=JSON)
def test_json_survives(alice: Caller, value: Any) -> None:
    answered = alice.value("SELECT jsonb_build_array($1::jsonb)", [{"value": value}])
    assert answered == [{"value": value}]


@SAME_CALLER
@given(
    texts=st.lists(st.none() | TEXTS, max_size=5),
    numbers=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5),
    matrix=st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(allow_nan=False), min_size=width, max_size=width),
            min_size=1,
            max_size=3,
        )
    ),
)
def test_arrays_survive(
    alice: Caller,
    texts: list[str | None],
    numbers: list[int | None],
    matrix: list[list[float]],
) -> None:
    exact = [None if number is None else str(number) for number in numbers]
    shown = [
        [value if math.isfinite(value) else str(value).replace("inf", "Infinity") for value in row]
        for row in matrix
    ]
    query = "SELECT $1::text[] AS texts, $2::int8[] AS numbers, $3::float8[] AS matrix"
    (row,) = alice.sql(query, [texts, exact, shown]).rows
    assert row["texts"] == texts
    assert [None if number is None else int(number) for number in row["numbers"]] == numbers
    assert row["matrix"] == shown
