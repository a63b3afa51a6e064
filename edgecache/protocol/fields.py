"""JSON as typed messages: structs of msgspec, and errors that name the wrong field.

``true`` is not a number here, ``1.0`` not an integer, and NaN is not JSON.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

INTEGER_LIMIT: Final = 1 << 63
# PostgreSQL stores no NUL.
NO_NUL: Final = r"\A[^\x00]*\Z"
# Characters of a field's name in a message: a sender may have made up a very long one.
NAMED_CHARS: Final = 256
# msgspec's sentences about a name.
FIELD: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)

Count = Annotated[int, Meta(ge=0, le=INTEGER_LIMIT - 1)]
RowId = Annotated[int, Meta(ge=1, le=INTEGER_LIMIT - 1)]
Text = Annotated[str, Meta(max_length=2048, pattern=NO_NUL)]
Sha256 = Annotated[bytes, Meta(min_length=32, max_length=32)]

encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with which field; nested ones as ``receipts[3].ticket``, the whole as ````.

    code: ``invalid``, ``unknown``, ``required``.
    """

    field: str
    message: str
    code: str = "invalid"


class MalformedMessage(ValueError):
    """A message has another form than its contract; ``errors`` names the wrong fields.

    A field without a name is the whole: it is not JSON, or not an object.
    """

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{error.field or 'body'}: {error.message}" for error in errors))
        self.errors = errors


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent to the brain. Unknown fields are refused, so that a typo changes no meaning."""


class Answer(msgspec.Struct, frozen=True):
    """What the brain answers. It may have fields that an older worker does not know."""


def decode(raw: bytes, message: type[T]) -> T:
    """Read JSON as a message. Raises MalformedMessage for its first wrong field."""
    try:
        return msgspec.json.decode(raw, type=message)
    except msgspec.ValidationError as error:
        raise MalformedMessage([_field_error(str(error))]) from None
    # Wrong UTF-8 is a ValueError, lists in lists without end a RecursionError.
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedMessage([FieldError("", "is not JSON")]) from error


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
