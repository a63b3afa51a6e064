"""From JSON to the dataclasses of zonal.types, as their annotations say."""

import dataclasses
import functools
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, TypeVar, Union, get_args, get_origin

from zonal.errors import UnexpectedAnswerError

T = TypeVar("T")
Decoder = Callable[[Any], Any]


def decode(kind: type[T], value: Any) -> T:
    """Return an answer as its type; fields that the type does not have are left out.

    Raises UnexpectedAnswerError if the answer lacks a field.
    """
    annotation: Any = kind
    decoded: T = _decoder(annotation)(value)
    return decoded


@functools.cache
def _decoder(annotation: Any) -> Decoder:
    """Return the function for an annotation; made once, since every row of a page needs it."""
    if dataclasses.is_dataclass(annotation):
        return _of_dataclass(annotation)
    if annotation is datetime:
        return _moment
    if annotation is float:
        return float
    if annotation is date:
        return date.fromisoformat
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Union:
        return _optional(_decoder(arguments[0]))
    if origin is list:
        return _list(_decoder(arguments[0]))
    return _itself


def _of_dataclass(kind: Any) -> Decoder:
    fields = dataclasses.fields(kind)
    required = [each.name for each in fields if each.default is dataclasses.MISSING]
    types: list[tuple[str, Any]] = [(each.name, each.type) for each in fields]
    converted = [(name, _decoder(annotation)) for name, annotation in types]
    plain = [name for name, decoder in converted if decoder is _itself]
    others = [(name, decoder) for name, decoder in converted if decoder is not _itself]

    def decode_fields(value: Any) -> Any:
        if not isinstance(value, dict) or any(name not in value for name in required):
            raise UnexpectedAnswerError(f"The answer is no {kind.__name__} of the platform's.")
        given = {name: value[name] for name in plain if name in value}
        for name, decoder in others:
            if name in value:
                given[name] = decoder(value[name])
        return kind(**given)

    return decode_fields


def _itself(value: Any) -> Any:
    return value


def _moment(value: Any) -> datetime:
    # Python before 3.11 does not read the Z of UTC.
    return datetime.fromisoformat(value.replace("Z", "+00:00"))


def _optional(decoder: Decoder) -> Decoder:
    if decoder is _itself:
        return _itself
    return lambda value: None if value is None else decoder(value)


def _list(decoder: Decoder) -> Decoder:
    if decoder is _itself:
        return _itself
    return lambda values: [decoder(value) for value in values]
