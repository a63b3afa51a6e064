"""Signals of a process without an event loop, which waits for them and for a pipe."""

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

# More than can have come between two looks.
READ_BYTES: Final = 4096


class SignalInbox:
    """Receives signals until it is closed; until then none of them has its usual effect."""

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self._signals = signals
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._write)
        for each in self._signals:
            signal.signal(each, _note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.forget()

    def forget(self) -> None:
        """Give the signals their usual effect again."""
        signal.set_wakeup_fd(-1)
        for each in self._signals:
            signal.signal(each, signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)

    def wait(self, pipe: int, timeout_s: float | None) -> tuple[bytes, list[signal.Signals]]:
        """Wait for signals or for bytes of a pipe; return both, in the order in which they came."""
        readable, _, _ = select.select([self._read, pipe], [], [], timeout_s)
        came = os.read(pipe, READ_BYTES) if pipe in readable else b""
        numbers = os.read(self._read, READ_BYTES) if self._read in readable else b""
        return came, [signal.Signals(number) for number in numbers]

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """Let signals wait, so that a fork has them in the parent alone."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)


def _note(*_: Any) -> None:
    """Do nothing: what has come is read from the pipe."""
