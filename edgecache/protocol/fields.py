"""Strict reading of JSON: each value is read by name and type, and errors name it.

``true`` is not a number here, ``1.0`` not an integer, and NaN is refused.
"""

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Final, Self, TypeVar, get_type_hints
from uuid import UUID

import msgspec

from edgecache.protocol.names import parse_sha256

T = TypeVar("T")

INTEGER_LIMIT: Final = 1 << 63
TEXT_LIMIT: Final = 2048
# Characters of a field's name in a message: a sender may have made up a very long one.
NAMED_CHARS: Final = 256
# msgspec's sentences about a name.
FIELD: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
# Errors named in a message; a hostile message may have a hundred thousand.
ERRORS_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with which field; nested ones as ``receipts[3].ticket``, the whole as ````.

    code: ``invalid``, ``unknown``, ``required``.
    """

    field: str
    message: str
    code: str = "invalid"


class MalformedMessage(ValueError):
    """A message has another form than its contract; ``errors`` names each wrong field."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{error.field or 'body'}: {error.message}" for error in errors))
        self.errors = errors


def parse(raw: bytes) -> "FieldReader":
    """Read a JSON object. Raises MalformedMessage."""
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedMessage([FieldError("", "is not JSON")]) from error
    return FieldReader(value)


def read(value: object, message: type[T], *, is_text: bool = False) -> T:
    """Return a decoded value as a message. Raises MalformedMessage for its first wrong field.

    is_text: numbers and times are written as text, as in a query.
    """
    try:
        return msgspec.convert(value, message, strict=not is_text)
    except msgspec.ValidationError as error:
        raise MalformedMessage([_field_error(str(error))]) from None


def _field_error(text: str) -> FieldError:
    """Return what a ValidationError says: "Expected `int`, got `str` - at `$.jobs[0].id`"."""
    sentence, has_path, path = text.rpartition(" - at `$")
    sentence, path = (sentence, path.rstrip("`").lstrip(".")) if has_path else (text, "")
    wrong = FIELD.fullmatch(sentence)
    if wrong is None:
        return FieldError(path[:NAMED_CHARS], sentence[:NAMED_CHARS])
    name = f"{path}.{wrong[2]}" if path else wrong[2]
    if wrong[1] == "contains unknown":
        return FieldError(name[:NAMED_CHARS], "is not a field", "unknown")
    return FieldError(name[:NAMED_CHARS], "is required", "required")


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


class FieldReader:
    """The fields of one JSON object; every method takes one, and ``finish`` says what was wrong.

    A method gives a harmless value for a wrong field, so that many wrong ones are found in one go:
    nothing it gave may be used before ``finish`` returned.
    """

    def __init__(self, value: Any, path: str = "", *, is_text: bool = False) -> None:
        """Wrap a decoded value, which may be anything.

        is_text: numbers are written as text, as in a query.
        """
        self._is_text = is_text
        self.errors: list[FieldError] = []
        self._path = path
        self._values: dict[str, Any] = value if isinstance(value, dict) else {}
        self._left = set(self._values)
        if not isinstance(value, dict):
            self.errors.append(FieldError(path, "must be an object"))

    def is_given(self, name: str) -> bool:
        """True if a field is there and not null; it may be absent then."""
        self._left.discard(name)
        return self._values.get(name) is not None

    def integer(
        self,
        name: str,
        *,
        minimum: int = 0,
        maximum: int = INTEGER_LIMIT - 1,
        default: int | None = None,
    ) -> int:
        """Take a whole number; with a default it may be absent or null."""
        value = self._take(name)
        if value is None and default is not None:
            return default
        if self._is_text and isinstance(value, str):
            value = int(value) if value.isascii() and value.isdecimal() else value
        if type(value) is int and minimum <= value <= maximum:
            return value
        return self.wrong(name, f"must be an integer from {minimum} to {maximum}", minimum)

    def number(self, name: str, *, minimum: float = 0.0, maximum: float = math.inf) -> float:
        value = self._take(name)
        if type(value) in {int, float} and minimum <= value <= min(maximum, sys.float_info.max):
            return float(value)
        return self.wrong(name, f"must be a number from {minimum:g} to {maximum:g}", minimum)

    def boolean(self, name: str, *, default: bool | None = None) -> bool:
        """Take true or false; with a default it may be absent or null."""
        value = self._take(name)
        value = default if value is None else value
        return (
            value if isinstance(value, bool) else self.wrong(name, "must be true or false", False)
        )

    def text(self, name: str, *, limit: int = TEXT_LIMIT, default: str | None = None) -> str:
        """Return a text of up to ``limit`` characters; with a default it may be absent or null."""
        value = self._take(name)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and len(value) <= limit and "\0" not in value:
            return value
        return self.wrong(name, f"must be a text of at most {limit} characters", "")

    def texts(self, name: str, *, limit: int, length: int) -> list[str]:
        """Take a list of texts; absent and null are an empty one. limit: how many; length: each."""
        if not self.is_given(name):
            return []

        def read(value: Any) -> str | None:
            return value if isinstance(value, str) and len(value) <= length else None

        message = f"must be a text of at most {length} characters"
        return list(self.values(name, read, message, limit=limit))

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object unchanged; absent and null are an empty one."""
        value = self._take(name) if self.is_given(name) else {}
        return value if isinstance(value, dict) else self.wrong(name, "must be an object", {})

    def choice(self, name: str, choices: Callable[[str], T]) -> T:
        """Take one of an enumeration's values."""
        value = self._take(name)
        try:
            return choices(value)
        except ValueError:
            return self.wrong(name, "is not a known value", None)  # type: ignore[return-value] # unused after finish

    def uuid(self, name: str) -> UUID:
        """Take a UUID in its usual form."""
        return self.converted(name, read_uuid, "must be a UUID", UUID(int=0))

    def sha256(self, name: str) -> bytes:
        """Take a hash as 64 lower-case hexadecimal digits."""
        return self.converted(name, read_sha256, "must be 64 hexadecimal digits", b"")

    def objects(
        self, name: str, read: Callable[["FieldReader"], T], *, limit: int
    ) -> tuple[T, ...]:
        found: list[T] = []
        for index, value in enumerate(self._list(name, limit)):
            fields = FieldReader(value, f"{self._at(name)}[{index}]")
            found.append(read(fields))
            self.errors += fields.errors
            if self._has_enough_errors:
                break
        return tuple(found)

    def values(
        self, name: str, read: Callable[[Any], T | None], message: str, *, limit: int
    ) -> tuple[T, ...]:
        """Return a list of values converted by ``read``, which returns None for wrong ones."""
        found: list[T] = []
        for index, value in enumerate(self._list(name, limit)):
            converted = read(value)
            if converted is None:
                self.wrong(f"{name}[{index}]", message, None)
                if self._has_enough_errors:
                    break
            else:
                found.append(converted)
        return tuple(found)

    def converted(self, name: str, read: Callable[[Any], T | None], message: str, blank: T) -> T:
        """Take a value that ``read`` converts; it returns None for a wrong one."""
        value = read(self._take(name))
        return self.wrong(name, message, blank) if value is None else value

    def wrong(self, name: str, message: str, blank: T, *, code: str = "invalid") -> T:
        """Record that a field is wrong; return the harmless value."""
        self.errors.append(FieldError(self._at(name), message, code))
        return blank

    def finish(self) -> None:
        """Raise MalformedMessage when anything was wrong, or there are more fields."""
        self.refuse_unknown()
        self.check()

    def check(self) -> None:
        """Raise MalformedMessage when anything was wrong."""
        if self.errors:
            raise MalformedMessage(self.errors)

    def refuse_unknown(self) -> None:
        """Record an error for each field that was not read, or for some of very many."""
        for name in sorted(islice(self._left, ERRORS_NAMED)):
            self.wrong(name[:64], "is not a field", None, code="unknown")

    @property
    def _has_enough_errors(self) -> bool:
        return len(self.errors) >= ERRORS_NAMED

    def _list(self, name: str, limit: int) -> list[Any]:
        value = self._take(name)
        if isinstance(value, list) and len(value) <= limit:
            return value
        return self.wrong(name, f"must be a list of at most {limit}", [])

    def _take(self, name: str) -> Any:
        self._left.discard(name)
        return self._values.get(name)

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name


def read_uuid(value: Any) -> UUID | None:
    """Return a UUID in its usual, lower-case form; None for any other value."""
    try:
        found = UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and str(found) == value else None


def read_sha256(value: Any) -> bytes | None:
    """Return a hash from 64 lower-case hexadecimal digits; None for any other value."""
    return parse_sha256(value) if isinstance(value, str) else None


class Message:
    """A frozen dataclass with slots that is sent as a JSON object.

    Each field is annotated with the function that reads it, as
    ``Annotated[int, FieldReader.integer]``.
    ALLOWS_UNKNOWN: answers of the brain may have fields that an older worker does not know;
    requests may not, so that a typo never changes meaning.
    """

    __slots__: tuple[str, ...] = ()
    ALLOWS_UNKNOWN: ClassVar = False

    @classmethod
    def read(cls, fields: FieldReader) -> Self:
        """Return the message that fields hold. Raises MalformedMessage."""
        message = cls.take(fields)
        fields.check()
        return message

    @classmethod
    def take(cls, fields: FieldReader) -> Self:
        """Read as ``read`` does; the result must not be used before the fields were checked."""
        takes = _takes_of(cls)  # type: ignore[arg-type] # mypy takes no class for Hashable
        taken = {name: take(fields, name) for name, take in takes.items()}
        if not cls.ALLOWS_UNKNOWN:
            fields.refuse_unknown()
        return cls(**taken)

    def as_json(self) -> dict[str, Any]:
        """Return its JSON: bytes in hexadecimal, ids as text, tuples as lists."""
        return {name: _json_of(getattr(self, name)) for name in self.__slots__}


@cache
def _takes_of(message: type[Message]) -> dict[str, Callable[[FieldReader, str], Any]]:
    hints = get_type_hints(message, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in message.__slots__}


def _json_of(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json_of(each) for each in value]
    if isinstance(value, Message):
        return value.as_json()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, UUID) else value
