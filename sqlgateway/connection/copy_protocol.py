"""Sending the rows of a COPY FROM STDIN through libpq."""

import psycopg
from psycopg.pq.abc import PGconn

from sqlgateway.connection.wire import Wire, WireBroken, WireFull


class CopyBroken(Exception):
    """The connection broke, or the server took nothing for too long; no row is kept."""


class CopyIn:
    """The sending side of a COPY. give_up_at: time.monotonic."""

    def __init__(self, pgconn: PGconn, wire: Wire, *, give_up_at: float) -> None:
        self._pgconn = pgconn
        self._wire = wire
        self._give_up_at = give_up_at

    def put(self, piece: bytes) -> bool:
        """Send rows, return when the socket has taken them; False if the COPY has failed.

        Raises CopyBroken.
        """
        # A COPY holds nothing of what the server says meanwhile: notices are handed on at once.
        self._wire.counted, self._wire.looks_ready = 0, False
        try:
            self._pgconn.put_copy_data(piece)
            self._flush()
        except (WireBroken, WireFull, psycopg.Error) as exc:
            raise CopyBroken from exc
        # Only an error ends a COPY before its sender does; libpq shows it at the end alone.
        return not self._wire.looks_ready

    def end(self, *, error: bytes | None = None) -> None:
        """End the COPY, whose result is due then; with an error the server refuses it.

        Raises CopyBroken.
        """
        try:
            self._pgconn.put_copy_end(error)
            self._flush()
        except (WireBroken, WireFull, psycopg.Error) as exc:
            raise CopyBroken from exc

    def _flush(self) -> None:
        is_flushing = True
        while is_flushing:
            is_flushing = bool(self._pgconn.flush())
            while not self._wire.pump(self._give_up_at):
                self._pgconn.consume_input()
                # Parses what has arrived: libpq would otherwise keep it until the end of the COPY.
                self._pgconn.is_busy()
                while self._pgconn.notifies() is not None:
                    self._wire.counted = 0
