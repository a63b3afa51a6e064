"""Calls to providers: bounded in time and size, never led elsewhere.

A provider's address is the operator's choice, so there is no address to keep away from; what
answers there is not trusted to be quick, short or honest.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from math import inf
from typing import Any, Final

import requests
from django.conf import settings

MAX_BYTES: Final = 64 * 1024
AGENT: Final = "zonal"


_until: ContextVar[float] = ContextVar("until", default=inf)


class AnswerTooLong(requests.RequestException):
    """The answer does not end within bounds."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Have all calls inside end in time together: what comes later is not even begun."""
    token = _until.set(min(_until.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _until.reset(token)


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str | bytes] | None = None,
    data: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    auth: Any = None,
) -> requests.Response:
    """Give the answer, read to its end; a redirect is an answer and is not followed.

    Raises requests.RequestException: Timeout, ConnectionError, AnswerTooLong.
    """
    # For the answer as a whole: single reads may each be in time and yet go on for ever.
    begun = time.monotonic()
    until = min(_until.get(), begun + 2 * settings.OAUTH_TIMEOUT_S)
    if begun >= until:
        raise requests.Timeout
    with requests.request(
        method,
        url,
        headers={"User-Agent": AGENT, **(headers or {}), "Accept-Encoding": "identity"},
        data=data,
        params=params,
        # Something has to be given, or a .netrc would replace the Authorization header.
        auth=auth or _as_it_is,
        timeout=min(settings.OAUTH_TIMEOUT_S, until - begun),
        allow_redirects=False,
        stream=True,
    ) as answer:
        return _whole(answer, until=until)


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _whole(answer: requests.Response, *, until: float) -> requests.Response:
    body = bytearray()
    # Byte by byte: a longer read would wait for its length, however slowly that comes.
    for byte in answer.iter_content(1):
        body += byte
        if len(body) > MAX_BYTES:
            raise AnswerTooLong
        if time.monotonic() > until:
            raise requests.Timeout
    read = requests.Response()
    read.status_code, read.reason = answer.status_code, answer.reason
    read.headers, read.url, read.request = answer.headers, answer.url, answer.request
    read.encoding = "utf-8"
    read.raw = BytesIO(body)
    return read
