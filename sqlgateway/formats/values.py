"""Read many values of a result with one call."""

from collections.abc import Sequence
from typing import Final

from psycopg.adapt import Transformer
from psycopg.pq import Format
from psycopg.pq.abc import PGresult

# The loader of this type in binary format copies any bytes unchanged.
BYTEA_OID: Final = 17


def values_of(
    result: PGresult, start: int = 0, stop: int | None = None
) -> list[Sequence[bytes | None]]:
    """Return the values of some rows by column: PostgreSQL's text, None for NULL.

    One call of a function in C takes a third of the time of a call for each value.
    """
    stop = result.ntuples if stop is None else stop
    count = result.nfields
    if start >= stop:
        return [[] for _ in range(count)]
    transformer = Transformer()
    transformer.set_pgresult(result, set_loaders=False)
    transformer.set_loader_types([BYTEA_OID] * count, Format.BINARY)
    return list(zip(*transformer.load_rows(start, stop, tuple), strict=True))
