"""Futures whose result may be ignored, or that only wake a task."""

import asyncio
from typing import Any


def retrieve(done: asyncio.Future[Any]) -> None:
    """Retrieve the exception, so that asyncio does not report it as never retrieved."""
    if not done.cancelled():
        done.exception()


def wake(waiter: asyncio.Future[None] | None) -> None:
    """Wake the task that awaits a future, if there is one."""
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
