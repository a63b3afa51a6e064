"""Compressed bodies: made once in a thread, and kept with the bodies that are read often.

They are named by the hash of the body and the coding, and used only for a version that was found: a
purge or a new version needs to remove none.
"""

import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import brotli
import zstandard

from edgecache.brain.core.errors import BrainError, Overloaded
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.shared_calls import SharedCalls
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.streaming import Fallback, Streamer
from edgecache.runtime.fair_shares import Shares
from edgecache.runtime.threads import FairThreads

_GZIP: Final = 31
# By coding, the preferred one first. Levels that take some 2 ms for 100 KiB.
COMPRESSORS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    "zstd": lambda body: zstandard.ZstdCompressor(level=9).compress(body),
    "gzip": lambda body: zlib.compress(body, 6, _GZIP),
}
# Bodies that are read to be compressed, or are being: one of a bucket, two of an organization. Each
# takes a processor from the event loop.
MAX_COMPRESSING: Final = 4
# A body that shrinks by less is sent as it is.
MIN_SAVED_SHARE: Final = 0.1


class Compression:
    """Compresses bodies. What would have to wait for others is sent as it is."""

    def __init__(self, streamer: Streamer, threads: FairThreads) -> None:
        self._streamer = streamer
        self._threads = threads
        self._running = Shares(MAX_COMPRESSING, refusal=Overloaded)
        # By bucket and name: no request gets an error of another bucket's origin.
        self._calls: SharedCalls[tuple[int, bytes], bytes] = SharedCalls()

    async def body(
        self, coding: str, delivery: DeliveryPlan, fallback: Fallback, *, began: float
    ) -> bytes:
        """Return the body of a delivery in a coding, b"" to send it as it is.

        delivery: of a whole body. began: ``time.perf_counter`` when the request came.
        """
        name = delivery.sha256 + coding.encode()
        known = self._streamer.hot.get(name)
        if known is not None:
            return known
        compress = partial(self._compress, name, coding, delivery, fallback, began)
        return await self._calls.share((delivery.bucket_id, name), compress)

    async def _compress(
        self, name: bytes, coding: str, delivery: DeliveryPlan, fallback: Fallback, began: float
    ) -> bytes:
        known = self._streamer.hot.get(name)
        if known is not None:
            # The call before this one has made it.
            return known
        share_key = SHARE_KEY.get()
        if not self._running.try_take(share_key):
            return b""
        try:
            body = await self._streamer.whole(delivery, fallback, began)
            making = self._threads.try_begin(share_key, partial(_compressed, coding, body))
            if making is None:
                return b""
            made = await making
        except BrainError:
            # It occurs again when the body is sent as it is.
            return b""
        finally:
            self._running.give_back(share_key)
        self._streamer.hot.keep(name, made, organization_id=delivery.tenant.organization_id)
        return made


def _compressed(coding: str, body: bytes) -> bytes:
    made = COMPRESSORS[coding](body)
    return made if len(made) <= len(body) * (1 - MIN_SAVED_SHARE) else b""
