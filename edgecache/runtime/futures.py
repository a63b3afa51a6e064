"""Futures whose result may be ignored."""

import asyncio
from typing import Any


def retrieve(done: asyncio.Future[Any]) -> None:
    """Retrieve the exception, so that asyncio does not report it as never retrieved."""
    if not done.cancelled():
        done.exception()
