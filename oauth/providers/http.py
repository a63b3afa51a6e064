"""Calls to providers, bounded in time and size, without following redirects.

The operator chooses a provider's address, so no address is forbidden; but the server there is not
trusted to answer fast, briefly or honestly.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from math import inf
from typing import Any, Final

import requests
import urllib3

# Longest silence of a provider; one response may take twice as long, all requests of a sign-in
# three times.
TIMEOUT_S: Final = 5
MAX_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 16 * 1024
USER_AGENT: Final = "zonal"

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


class ResponseTooLong(requests.RequestException):
    """The response is longer than ``MAX_BYTES``."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the time of all calls inside together: no call begins after the deadline."""
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str | bytes] | None = None,
    data: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    auth: Any = None,
) -> requests.Response:
    """Return the response, read to its end; a redirect is returned and not followed.

    Raises requests.RequestException: Timeout, ConnectionError, ResponseTooLong.
    """
    # For the response as a whole: each read may be in time while the response never ends.
    started = time.monotonic()
    deadline = min(_deadline.get(), started + 2 * TIMEOUT_S)
    if started >= deadline:
        raise requests.Timeout
    with requests.request(
        method,
        url,
        headers={"User-Agent": USER_AGENT, **(headers or {}), "Accept-Encoding": "identity"},
        data=data,
        params=params,
        # Without any, requests would replace the Authorization header from a .netrc file.
        auth=auth or _keep_headers,
        timeout=min(TIMEOUT_S, deadline - started),
        allow_redirects=False,
        stream=True,
    ) as response:
        return _read(response, deadline=deadline)


def _keep_headers(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _read(response: requests.Response, *, deadline: float) -> requests.Response:
    body = bytearray()
    try:
        # Reads what has arrived: any other read waits for its whole length, even from a slow
        # server.
        while piece := response.raw.read1(PIECE_BYTES, decode_content=True):
            body += piece
            if len(body) > MAX_BYTES:
                raise ResponseTooLong
            if time.monotonic() > deadline:
                raise requests.Timeout
    except urllib3.exceptions.HTTPError as exc:
        raise requests.ConnectionError from exc
    read = requests.Response()
    read.status_code, read.reason = response.status_code, response.reason
    read.headers, read.url, read.request = response.headers, response.url, response.request
    read.encoding = "utf-8"
    read.raw = BytesIO(body)
    return read
