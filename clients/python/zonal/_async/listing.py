"""Listings, read page by page as they are iterated over."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from zonal._async.transport import AsyncTransport, Call
from zonal.decoding import decode
from zonal.pages import query_of_next

T = TypeVar("T")


async def listed(
    transport: AsyncTransport, path: str, kind: type[T], **params: Any
) -> AsyncIterator[T]:
    """Return all results of a listing; params that are None are left out."""
    query: Any = {name: value for name, value in params.items() if value is not None}
    while query is not None:
        page = await transport.call(Call("GET", path, params=query))
        for result in page["results"]:
            yield decode(kind, result)
        query = query_of_next(page)
