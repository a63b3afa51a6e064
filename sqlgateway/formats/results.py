"""Collect the rows of a statement as JSON, up to the limits of an answer."""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, Literal

import orjson
from psycopg.pq.abc import PGresult

from sqlgateway.errors import ResultNotText
from sqlgateway.formats.column_types import (
    BUILTIN,
    ColumnType,
    JsonAs,
    NumericAs,
    ValuesAs,
    encoder_for,
    text_encoder_for,
)
from sqlgateway.formats.encoders import (
    Check,
    Encoded,
    Encoder,
    SizeLimitExceeded,
    Values,
    unlimited,
    values_of,
)

RowsAs = Literal["objects", "arrays"]

# Rows are encoded in batches: large enough for fast code in C, small enough to use little memory.
BATCH_ROWS: Final = 512
BATCH_BYTES: Final = 2**20
# The JSON of a row may be this much shorter than its values' text, because of bounds of arrays.
SHORTER_BYTES: Final = 4096
# The memory of a value in Python, in addition to its bytes.
VALUE_BYTES: Final = 40
# Values of unknown types are kept until their types are known. They may take this multiple of the
# bytes left in the answer, over all of its results.
UNKNOWN_FACTOR: Final = 4
# Columns of all results of an answer: their names are not rows, but also need memory.
MAX_COLUMNS: Final = 20_000
CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


@dataclass(frozen=True, slots=True)
class RowFormat:
    """The format of a statement's rows, and their maximum number."""

    max_rows: int = 10_000
    rows_as: RowsAs = "objects"
    numeric: NumericAs = "string"
    json: JsonAs = "value"
    values: ValuesAs = "json"


@dataclass(slots=True)
class ResponseBudget:
    """The bytes that are left in an answer, for all of its results.

    deadline: a time.monotonic(), at which the conversion stops and the result is truncated.
    unencoded_bytes: the memory of values of unknown types.
    columns_left: how many columns further results may have.
    """

    bytes_left: int
    deadline: float = math.inf
    unencoded_bytes: int = 0
    columns_left: int = MAX_COLUMNS


@dataclass(frozen=True, slots=True)
class Column:
    """A column. key: its name in objects, unique even if two columns share a name."""

    name: str
    key: str
    oid: int


@dataclass(slots=True)
class Statement:
    """The result of one statement.

    batches: rows as JSON, joined by commas.
    kept: the number of rows in the batches.
    row_count: the number of rows returned or changed.
    plan: the JSON of an explained statement, otherwise empty.
    """

    columns: list[Column] = field(default_factory=list)
    column_types: dict[int, ColumnType] = field(default_factory=dict)
    batches: list[bytes] = field(default_factory=list)
    kept: int = 0
    row_count: int = 0
    size_bytes: int = 0
    command: str = ""
    plan: bytes = b""
    truncated: bool = False

    def members(self, *, is_whole: bool = True) -> list[bytes]:
        """Return the members ``"columns": …, "rows": …`` and so on, in parts, without braces.

        is_whole: False if another part of the answer is truncated.
        """
        rows = [part for batch in self.batches for part in (b",", batch)]
        return [
            b'"columns":%b,"rows":[' % orjson.dumps(described(self.columns, self.column_types)),
            *rows[1:],
            b'],"row_count":%d,"command":%b,%b"truncated":%b'
            % (
                self.row_count,
                orjson.dumps(self.command),
                b'"plan":%b,' % self.plan if self.plan else b"",
                b"true" if self.truncated or not is_whole else b"false",
            ),
        ]


class RowEncoder:
    """Encodes rows with these columns as JSON texts."""

    def __init__(
        self,
        columns: Sequence[Column],
        column_types: Mapping[int, ColumnType],
        *,
        row_format: RowFormat,
    ) -> None:
        self._column_types = [column_types[column.oid] for column in columns]
        keys = [orjson.dumps(column.key) + b":" for column in columns]
        self._keys = None if row_format.rows_as == "arrays" else keys
        self._format = row_format

    def joined(
        self, values: Sequence[Values], count: int, between: bytes, *, check: Check = unlimited
    ) -> bytes:
        """Return the rows' JSON, joined by ``between``. values: by column.

        Raises ResultNotText, SizeLimitExceeded by ``check``.
        """
        encoders = [self._encoder_for(kind, check) for kind in self._column_types]
        try:
            encoded = [encode(column) for encode, column in zip(encoders, values, strict=True)]
            # The constant parts of all rows, into which the values are inserted by column.
            parts = self._constants(encoded, between) * count
            for number, (fragments, _, _) in enumerate(encoded):
                parts[2 * number + 1 :: 2 * len(encoded) + 1] = fragments
            text = b"".join(parts).removeprefix(between)
            if not text.isascii():
                text.decode()
        except UnicodeDecodeError as exc:
            raise ResultNotText("A value is not UTF-8.") from exc
        return text

    def _encoder_for(self, kind: ColumnType, check: Check) -> Encoder:
        if self._format.values == "text":
            return text_encoder_for(kind, check=check)
        return encoder_for(kind, self._format.numeric, self._format.json, check=check)

    def _constants(self, encoded: Sequence[Encoded], between: bytes) -> list[bytes]:
        """Return a row's constant parts, with an empty one in the place of each value."""
        opening, closing = (b"[", b"]") if self._keys is None else (b"{", b"}")
        parts = [between + opening]
        for number, (_, before, after) in enumerate(encoded):
            name = b"" if self._keys is None else self._keys[number]
            parts[-1] += (b"," if number else b"") + name + before
            parts += [b"", after]
        parts[-1] += closing
        return parts


def columns_of(result: PGresult) -> list[Column]:
    """Return a result's columns.

    Raises ResultNotText for values in PostgreSQL's binary form, and for names that are not UTF-8.
    """
    fields = range(result.nfields)
    if any(result.fformat(i) for i in fields):
        raise ResultNotText("A column has PostgreSQL's binary form.")
    try:
        names = [(result.fname(i) or b"").decode() for i in fields]
    except UnicodeDecodeError as exc:
        raise ResultNotText("A column's name is not UTF-8.") from exc
    keys = unique_keys(names)
    return [Column(names[i], keys[i], result.ftype(i)) for i in fields]


def described(
    columns: Sequence[Column], column_types: Mapping[int, ColumnType]
) -> list[dict[str, Any]]:
    """Return the JSON of columns: name, type, oid, and the key in objects if it differs."""
    return [_described(column, column_types.get(column.oid)) for column in columns]


def _described(column: Column, kind: ColumnType | None) -> dict[str, Any]:
    shown = {
        "name": column.name,
        "type": kind.name if kind is not None else "unknown",
        "oid": column.oid,
    }
    if column.key != column.name:
        shown["key"] = column.key
    return shown


class Collector:
    """Collects the pieces of one statement's result into a Statement.

    Types that are not built in can be looked up only after the statement. Until ``finish`` their
    values are kept unencoded.
    """

    def __init__(self, budget: ResponseBudget, form: RowFormat) -> None:
        self._budget = budget
        self._form = form
        self._values: list[list[bytes | None]] = []
        self._pending_rows = 0
        self._pending_bytes = self._unencoded_bytes = 0
        self._taken = 0
        self._known: dict[int, ColumnType] = BUILTIN
        self.statement = Statement()
        self.unknown: set[int] = set()

    @property
    def is_full(self) -> bool:
        """True if a limit was reached and there are more rows."""
        return self.statement.truncated

    def start(self, result: PGresult, known: dict[int, ColumnType]) -> None:
        """Read the columns. known: types that were looked up in this database.

        A result with more columns than the answer has left is truncated to nothing.
        Raises ResultNotText.
        """
        if result.nfields > self._budget.columns_left:
            self.statement.truncated = True
            return
        self._budget.columns_left -= result.nfields
        self.statement.columns = columns = columns_of(result)
        oids = {column.oid for column in columns}
        self._values = [[] for _ in columns]
        self.unknown = {oid for oid in oids if oid not in BUILTIN and oid not in known}
        self._known = {
            oid: BUILTIN.get(oid) or known.get(oid, ColumnType("unknown")) for oid in oids
        }

    def add(self, result: PGresult, *, held_bytes: int) -> None:
        """Add the rows of a piece that fit.

        held_bytes: approximate size of the piece. Raises ResultNotText.
        """
        if self.is_full:
            return
        taken = min(result.ntuples, self._form.max_rows - self._taken)
        if held_bytes <= BATCH_BYTES:
            self._take(result, range(taken), held_bytes)
        else:
            # Row by row, so that a row that does not fit into the answer is not copied.
            for row in range(taken):
                self._take_row(result, row)
        if result.ntuples > taken and not self.is_full:
            self.statement.truncated = True

    def _take(self, result: PGresult, rows: range, size_bytes: int) -> None:
        values = values_of(result, rows.start, rows.stop)
        for kept, column in zip(self._values, values, strict=True):
            kept.extend(column)
        self._taken += len(rows)
        self._pending_rows += len(rows)
        self._pending_bytes += size_bytes
        if self.unknown:
            self._hold(size_bytes + VALUE_BYTES * len(rows) * len(self._values))
        elif self._pending_rows >= BATCH_ROWS or self._pending_bytes >= BATCH_BYTES:
            self.encode()

    def _hold(self, size_bytes: int) -> None:
        """Count the memory of values that are kept unencoded."""
        budget = self._budget
        self._unencoded_bytes += size_bytes
        budget.unencoded_bytes += size_bytes
        if budget.unencoded_bytes > UNKNOWN_FACTOR * budget.bytes_left:
            self.statement.truncated = True

    def drop(self) -> None:
        """Free what the result holds of the budget: it is left out of the answer."""
        self._budget.unencoded_bytes -= self._unencoded_bytes
        self._budget.columns_left += len(self.statement.columns)

    def _take_row(self, result: PGresult, row: int) -> None:
        if self.is_full:
            return
        columns = range(len(self._values))
        size = sum(len(result.get_value(row, column) or b"") for column in columns)
        if size > self._budget.bytes_left + SHORTER_BYTES:
            self.encode()
            self.statement.truncated = True
            return
        self._take(result, range(row, row + 1), size + 8 * len(columns))

    def finish(self, command_tag: str, known: dict[int, ColumnType]) -> Statement:
        """Encode the remaining values and return the statement.

        command_tag: such as ``INSERT 0 5``; empty for a cancelled query.
        Raises ResultNotText.
        """
        for oid in self.unknown:
            self._known[oid] = known.get(oid, ColumnType("unknown"))
        self.unknown = set()
        self.encode()
        statement = self.statement
        statement.column_types = self._known
        statement.command, count = split_tag(command_tag)
        if not command_tag and statement.truncated:
            statement.command = "SELECT"
        # The count of a truncated SELECT depends on chance; counts of changed rows are exact.
        is_given = count is None or (statement.truncated and statement.command not in CHANGES)
        statement.row_count = statement.kept if is_given else count or 0
        self._values = []
        return statement

    def encode(self) -> None:
        """Encode the pending rows, unless a type is unknown. Raises ResultNotText."""
        count = self._pending_rows
        if not count or self.unknown:
            return
        self._pending_rows = self._pending_bytes = 0
        values, self._values = self._values, [[] for _ in self._values]
        encoder = RowEncoder(self.statement.columns, self._known, row_format=self._form)
        try:
            self._keep(encoder.joined(values, count, b",", check=self._check), count)
        except SizeLimitExceeded:
            self._encode_each(encoder, values, count)

    def _encode_each(self, encoder: RowEncoder, values: Sequence[Values], count: int) -> None:
        """Encode row by row, up to the row that does not fit."""
        try:
            for row in range(count):
                one = [column[row : row + 1] for column in values]
                self._keep(encoder.joined(one, 1, b",", check=self._check), 1)
        except SizeLimitExceeded:
            self.statement.truncated = True

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self._budget.bytes_left or time.monotonic() > self._budget.deadline:
            raise SizeLimitExceeded

    def _keep(self, text: bytes, rows: int) -> None:
        """Keep rows; raise SizeLimitExceeded if they do not fit."""
        size = len(text) + 1
        if size > self._budget.bytes_left:
            raise SizeLimitExceeded
        statement = self.statement
        statement.batches.append(text)
        statement.kept += rows
        statement.size_bytes += size
        self._budget.bytes_left -= size


def unique_keys(names: Sequence[str]) -> list[str]:
    """Return unique names: ``id``, ``id_2``, ``id_3``."""
    if len(set(names)) == len(names):
        return list(names)
    taken = set(names)
    seen: Counter[str] = Counter()
    keys: list[str] = []
    for name in names:
        seen[name] += 1
        key = name
        if seen[name] > 1:
            number = seen[name]
            while (key := f"{name}_{number}") in taken:
                number += 1
            seen[name] = number
            taken.add(key)
        keys.append(key)
    return keys


def split_tag(tag: str) -> tuple[str, int | None]:
    """Return the command and its row count: ``INSERT 0 5`` is ``INSERT`` and 5."""
    words = tag.split(" ")
    count = int(words[-1]) if words[-1].isdigit() else None
    is_word = [not word.isdigit() for word in words]
    return " ".join(compress(words, is_word)), count
