"""A change of options that holds only where they are still as the caller has read them."""

from collections.abc import Callable

from msgspec import Struct

from common.errors import ChangedSinceRead
from edgecache.api.client import Row


def change_as_read(
    find: Callable[[], Row],
    send: Callable[[Row, Row], Row],
    options: type[Struct],
    check: Callable[[Row], bool] | None,
) -> Row:
    """Change what was found; return it as it is then.

    send: sends the change, with the options that the brain compares under its lock. check: called
    before it, and may refuse it; True if the options must still be so. Raises ChangedSinceRead, and
    what the functions raise.
    """
    row = find()
    expected = {}
    if check is not None and check(row):
        expected = {"expected": {name: row[name] for name in options.__struct_fields__}}
    try:
        return send(row, expected)
    except ChangedSinceRead:
        # It was changed a moment ago: now the check says what.
        if check is not None:
            check(find())
        raise
