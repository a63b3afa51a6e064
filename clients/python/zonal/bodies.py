"""JSON that holds what it was made from, or an error.

json.dumps and json.loads alone change values without an error.
"""

import json
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any, Optional, Union
from uuid import UUID

from zonal.errors import UnreadableAnswerError

# As deep as the platform takes it; also what ends a list that contains itself.
MAX_DEPTH = 254
CARRIED_OUT = "The request was carried out: do not repeat it."
UNKNOWN = "Whether the statement was carried out is unknown."


class Parameters(list[Any]):
    """The values of $1, $2 and so on, as JSON has them."""


def parameters(values: Sequence[Any], *, statement: Optional[int] = None) -> Parameters:
    """Return the values of a statement, dates, decimals, UUIDs and bytes as PostgreSQL's text.

    statement: its number in a batch. Raises TypeError and ValueError with the parameter's number
    for what neither JSON nor PostgreSQL has.
    """
    is_text = isinstance(values, (str, bytes, bytearray, memoryview))
    if is_text or not isinstance(values, Sequence):
        raise TypeError("params is a list of values, one for each of $1, $2 and so on.")
    before = "Parameter" if statement is None else f"Statement {statement}, parameter"
    return Parameters(_parameter(each, f"{before} ${at}") for at, each in enumerate(values, 1))


def encoded(body: Any) -> bytes:
    """Return JSON. Raises TypeError and ValueError for what JSON does not have."""
    return json.dumps(_json(body, "The body", 0), separators=(",", ":"), allow_nan=False).encode()


def parsed(content: bytes, *, outcome: str = CARRIED_OUT, has_decimals: bool = False) -> Any:
    """Return what JSON holds; a number that a float would change is a Decimal.

    outcome: what became of the request. has_decimals: True to make each number that is no integer
    a Decimal. Raises ValueError for what is no JSON, UnreadableAnswerError for what Python cannot
    hold: repeated keys, deep nesting, an integer of thousands of digits.
    """
    text = content.decode()
    try:
        return (DECODER_OF_DECIMALS if has_decimals else DECODER).decode(text)
    except json.JSONDecodeError:
        raise
    except (ValueError, ArithmeticError, RecursionError) as exc:
        raise UnreadableAnswerError(
            f"The answer holds what Python's values cannot: {exc}. {outcome} "
            'Without json="parsed" json is text.'
        ) from exc


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def flag(value: Optional[bool]) -> Optional[str]:
    """Return a boolean as query strings have it."""
    return None if value is None else str(value).lower()


def _parameter(value: Any, place: str) -> Any:
    if isinstance(value, int) and not _is_int8(value):
        # JSON parsers would round it; PostgreSQL reads the text of a number as well.
        return _digits(value, place)
    return _element(value, place, 0)


def _element(value: Any, place: str, depth: int) -> Any:
    """Return a parameter, or an element of one that is a list: of bytea[], for example."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "\\x" + bytes(value).hex()
    if isinstance(value, (list, tuple)):
        return _list(value, place, depth, _element)
    return _json(value, place, depth)


def _json(value: Any, place: str, depth: int) -> Any:
    if isinstance(value, Parameters):
        return value
    if isinstance(value, (list, tuple)):
        return _list(value, place, depth, _json)
    if isinstance(value, dict):
        return _dict(value, place, depth)
    if isinstance(value, (datetime, time)):
        return _moment(value, place)
    if isinstance(value, (date, UUID)):
        return str(value)
    return _scalar(value, place)


def _scalar(value: Any, place: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, place)
    if isinstance(value, int):
        if not _is_int8(value):
            raise ValueError(f"{place}: an int beyond 64 bits must be sent as a str here.")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{place}: {value} is not JSON compliant: send it as a str.")
        return value
    raise TypeError(f"{place}: a {type(value).__name__} cannot be sent.")


def _list(
    values: Sequence[Any], place: str, depth: int, each: Callable[[Any, str, int], Any]
) -> list[Any]:
    _check_depth(depth, place)
    return [each(value, f"{place}[{at}]", depth + 1) for at, value in enumerate(values)]


def _dict(values: dict[Any, Any], place: str, depth: int) -> dict[str, Any]:
    _check_depth(depth, place)
    for key in values:
        if not isinstance(key, str):
            raise TypeError(f"{place}: a {type(key).__name__} cannot be sent as a key.")
    return {
        _text(key, place): _json(value, f"{place}.{key}", depth + 1)
        for key, value in values.items()
    }


def _check_depth(depth: int, place: str) -> None:
    if depth >= MAX_DEPTH:
        raise ValueError(f"{place[:60]}…: JSON this deep must be sent as a str.")


def _text(value: str, place: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"{place}: a surrogate is no character and cannot be sent.") from exc
    return value


def _digits(value: int, place: str) -> str:
    try:
        return str(value)
    except ValueError as exc:
        raise ValueError(f"{place}: {exc}") from exc


def _is_int8(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _moment(value: Union[datetime, time], place: str) -> str:
    """Return ISO 8601; a datetime with a zone in UTC, since a timestamp would drop the zone."""
    if value.tzinfo is None:
        return value.isoformat()
    if value.utcoffset() is None:
        raise ValueError(f"{place}: a {type(value).__name__} whose zone has no offset.")
    if isinstance(value, time):
        return value.isoformat()
    try:
        return value.astimezone(timezone.utc).isoformat()
    except OverflowError as exc:
        raise ValueError(f"{place}: a datetime outside of the years 1 to 9999 in UTC.") from exc


def _number(text: str) -> Union[float, Decimal]:
    number = float(text)
    if repr(number) == text:
        return number
    exact = Decimal(text)
    return number if Decimal(repr(number)) == exact else exact


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object in which a key is repeated")
    return members


DECODER = json.JSONDecoder(parse_float=_number, object_pairs_hook=_object)
DECODER_OF_DECIMALS = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=_object)
