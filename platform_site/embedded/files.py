"""Small private files, written whole or not at all."""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

from platform_site.embedded.errors import AlreadyRunningError


def write_private(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file atomically; readers see the old text or the new one, never a part.

    The data reaches the disk before the name does, so that a power cut leaves no empty file.
    """
    descriptor, scratch = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).chmod(mode)
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def read_text(path: Path) -> str:
    """Give the file's text without surrounding blanks; empty when there is no such file."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""


class Lock:
    """A single-instance lock that the kernel releases with the process, however it ends."""

    def __init__(self, path: Path) -> None:
        """path: the lock file, made when missing and never deleted."""
        self._path = path
        self._file: IO[str] | None = None

    def take(self, *, refusal: str) -> None:
        """Take the lock or raise AlreadyRunningError with the refusal and the holder's id.

        refusal: a sentence; `{holder}` in it becomes "process 123" where that is known.
        """
        if self._file is not None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        file = os.fdopen(descriptor, "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip()
            file.close()
            shown = f"process {holder}" if holder else "another process"
            raise AlreadyRunningError(refusal.format(holder=shown)) from None
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def release(self) -> None:
        """Let others take it; harmless when it is not held."""
        if self._file is not None:
            self._file.close()
            self._file = None
