"""Sending the rows of a COPY FROM STDIN through libpq."""

import psycopg
from psycopg.pq.abc import PGconn

from sqlgateway.pg.wire import Wire, WireBroken, WireFull


class CopyBroken(Exception):
    """The connection broke, or the server accepted no data for too long; no row is kept."""


class CopyIn:
    """The sending side of a COPY. give_up_at: the time.monotonic() at which it fails."""

    def __init__(self, pgconn: PGconn, wire: Wire, *, give_up_at: float) -> None:
        self._pgconn = pgconn
        self._wire = wire
        self._give_up_at = give_up_at

    def put(self, piece: bytes) -> bool:
        """Send rows; return when they are written to the socket. False if the COPY has failed.

        Raises CopyBroken.
        """
        # During a COPY libpq buffers nothing: notices are passed on immediately.
        self._wire.counted, self._wire.looks_ready = 0, False
        try:
            self._pgconn.put_copy_data(piece)
            self._flush()
        except (WireBroken, WireFull, psycopg.Error) as exc:
            raise CopyBroken from exc
        # Only an error ends a COPY before its sender does. libpq reports it at the end of the COPY.
        return not self._wire.looks_ready

    def end(self, *, error: bytes | None = None) -> None:
        """End the COPY; its result can be read afterwards. With an error the server refuses it.

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
                # Lets libpq parse the input, which it would otherwise buffer until the end.
                self._pgconn.is_busy()
                while self._pgconn.notifies() is not None:
                    self._wire.counted = 0
