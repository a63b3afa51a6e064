"""The client's side of a delivery."""

import time
from dataclasses import dataclass
from uuid import UUID

from edgecache.brain.delivery.delivery import Delivery
from edgecache.http.exchange import Exchange, Stream


@dataclass(slots=True)
class Outcome:
    """Who gave the bytes, and when the first one went out."""

    began: float
    node_id: UUID | None = None
    first_byte_s: float = 0.0


class WayOut:
    """Where bytes leave: the answer begins with the first byte that is known to come."""

    def __init__(self, delivery: Delivery, exchange: Exchange, outcome: Outcome) -> None:
        self._delivery = delivery
        self._exchange = exchange
        self._outcome = outcome
        self._stream: Stream | None = None

    async def send(self, data: bytes) -> None:
        """Send bytes. Raises ClientGone."""
        if self._stream is None:
            self._outcome.first_byte_s = time.perf_counter() - self._outcome.began
            self._stream = self._exchange.response_stream(
                self._delivery.status, with_length(self._delivery)
            )
        if data:
            await self._stream.send_bytes(data)


def with_length(delivery: Delivery) -> list[tuple[str, str]]:
    """Give a delivery's headers, and how many bytes follow them."""
    return [*delivery.headers, ("content-length", str(delivery.span.length))]
