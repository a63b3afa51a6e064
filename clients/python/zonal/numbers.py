"""How the numbers and the json of an answer are read."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Literal, Optional, Union

from zonal.bodies import given
from zonal.types import Column, Result, SqlAnswer

Json = Literal["string", "parsed"]
Numeric = Literal["string", "number"]
# As the API names them.
WRITTEN: dict[str, str] = {"string": "string", "parsed": "value"}
FLOATS = frozenset({"float4", "float8", "float4[]", "float8[]"})


def chosen(json: Json, numeric: Optional[Numeric] = None) -> dict[str, Any]:
    """Return both choices as the API has them. Raises ValueError for another one of json."""
    if json not in WRITTEN:
        raise ValueError(f'json is "string" or "parsed", not {json!r}.')
    return {"json": WRITTEN[json], **given(numeric=numeric)}


def has_decimals(json: Json, numeric: Optional[Numeric] = None) -> bool:
    """True if numbers of json or numeric are in the answer: each with a fraction is a Decimal."""
    return json == "parsed" or numeric == "number"


def restore_floats(answer: SqlAnswer) -> SqlAnswer:
    """Return an answer whose columns of float4 and float8 have floats, as PostgreSQL does."""
    several: Sequence[Union[Result, SqlAnswer]] = [answer, *(answer.results or [])]
    for result in several:
        restore = restorer(result.columns)
        for row in result.rows:
            restore(row)
    return answer


def restorer(columns: Sequence[Column]) -> Callable[[Any], None]:
    """Return a function that puts floats into a row, a list or a dict."""
    places = [
        (at, column.key or column.name)
        for at, column in enumerate(columns)
        if column.type in FLOATS
    ]

    def restore(row: Any) -> None:
        for at, name in places:
            place = name if isinstance(row, dict) else at
            row[place] = _float(row[place])

    return restore


def _float(value: Any) -> Any:
    if isinstance(value, list):
        return [_float(each) for each in value]
    # A whole one has no fraction in JSON; NaN and the infinities are text.
    return float(value) if isinstance(value, Decimal) else value
