"""Bodies of requests, piece by piece, and what is left of one that was answered early."""

import asyncio
from contextlib import suppress
from typing import Any, Final

# Of a body that nobody wants so much is read all the same: a sender that finds its connection
# broken may not look for the answer.
SKIPPED_BYTES: Final = 16 << 20
SKIPPED_S: Final = 5.0


class Body:
    """The body of one request. received: its bytes up to now."""

    def __init__(self, protocol: Any, *, timeout_s: float) -> None:
        """Read nothing yet. timeout_s: the longest wait for a piece."""
        self.received = 0
        self._protocol = protocol
        self._timeout_s = timeout_s
        self._pieces: Any = None
        self._is_over = False

    async def next(self) -> bytes:
        """Give the next piece, empty at the end; also where it breaks off, as Granian does.

        Raises TimeoutError when it does not come.
        """
        if self._is_over:
            return b""
        if self._pieces is None:
            self._pieces = aiter(self._protocol)
        # A wait that is given up leaves nothing to go on with.
        self._is_over = True
        async with asyncio.timeout(self._timeout_s):
            piece: bytes = await anext(self._pieces)
        self._is_over = not piece
        self.received += len(piece)
        return piece

    async def skip_rest(self) -> None:
        """Read on for a while, so that the sender gets to hear the answer."""
        most = self.received + SKIPPED_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(SKIPPED_S):
                while self.received < most and await self.next():
                    pass
