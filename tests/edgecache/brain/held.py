"""Threads that a test holds in the middle of their work."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

WAIT_S: Final = 20.0


class Held:
    """Blocks a thread's work until the test releases it."""

    def __init__(self) -> None:
        self._came, self._go_on = threading.Event(), threading.Event()

    def hold(self) -> None:
        """Signal that the thread has arrived, and wait."""
        self._came.set()
        assert self._go_on.wait(WAIT_S)

    async def came(self) -> None:
        """Wait until the thread has arrived."""
        await asyncio.to_thread(self.wait)

    def wait(self) -> None:
        """Wait as ``came`` does, in a test without a loop."""
        assert self._came.wait(WAIT_S)

    def go_on(self) -> None:
        """Release the thread."""
        self._go_on.set()


def held_at(monkeypatch: pytest.MonkeyPatch, name: str, condition: Callable[..., bool]) -> Held:
    """Hold a function of ``os`` before it is called with what the condition is true of."""
    held, real = Held(), getattr(os, name)

    def hold(*args: Any, **options: Any) -> Any:
        if condition(*args):
            held.hold()
        return real(*args, **options)

    monkeypatch.setattr(os, name, hold)
    return held
