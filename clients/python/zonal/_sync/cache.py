"""The edge cache: its state, purges, access keys."""

from collections.abc import Iterator, Sequence
from typing import Literal, Optional
from urllib.parse import quote

from zonal._sync.listing import listed
from zonal._sync.transport import Call, Transport
from zonal.bodies import given
from zonal.decoding import decode
from zonal.types import AccessKey, CacheMetrics, CacheStatus, NewAccessKey, Purge

KEYS = "/v1/cache/access-keys"


class Cache:
    """The cache as the environment sees it."""

    def __init__(self, transport: Transport) -> None:
        """Send through a transport."""
        self._transport = transport

    def status(self) -> CacheStatus:
        """Return its health and size."""
        return decode(CacheStatus, self._transport.call(Call("GET", "/v1/cache/status")))

    def metrics(self) -> CacheMetrics:
        """Return its counters."""
        return decode(CacheMetrics, self._transport.call(Call("GET", "/v1/cache/metrics")))

    def purge(
        self,
        *,
        prefix: Optional[str] = None,
        keys: Optional[Sequence[str]] = None,
        tags: Optional[Sequence[str]] = None,
        everything: bool = False,
        preview: bool = False,
    ) -> Purge:
        """Remove cached copies; each name begins with the bucket: ``assets/logo.png``.

        tags: of the origin's responses, or of objects as ``assets/key=value``.

        preview: only count. A purge may be repeated: it changes nothing the second time.
        """
        body = given(
            prefix=prefix,
            keys=None if keys is None else list(keys),
            tags=None if tags is None else list(tags),
            all=everything or None,
            preview=preview or None,
        )
        call = Call("POST", "/v1/cache/purge", body, is_repeatable=True)
        return decode(Purge, self._transport.call(call))


class AccessKeys:
    """Keys of the S3 API."""

    def __init__(self, transport: Transport) -> None:
        """Send through a transport."""
        self._transport = transport

    def list(self) -> Iterator[AccessKey]:
        """Return the environment's, without their secrets."""
        return listed(self._transport, KEYS, AccessKey)

    def create(
        self, label: str = "", *, access: Literal["read", "write"] = "write"
    ) -> NewAccessKey:
        """Make one; only this answer has its secret."""
        body = {"label": label, "access": access}
        return decode(NewAccessKey, self._transport.call(Call("POST", KEYS, body)))

    def delete(self, access_key_id: str) -> None:
        """Delete one; requests that it signed are refused at once."""
        self._transport.call(Call("DELETE", f"{KEYS}/{quote(access_key_id, safe='')}"))
