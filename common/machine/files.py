"""Small private files, written atomically."""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

from common.machine.errors import AlreadyRunningError


def write_private(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file atomically: readers see either the old text or the new text.

    The data is synced before the rename, so that a power failure leaves no empty file.
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
    """Return the file's text without surrounding blanks; '' if the file does not exist."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""


class Lock:
    """A single-instance lock that the kernel releases with the process, however it ends."""

    def __init__(self, path: Path) -> None:
        """path: the lock file, created if missing and never deleted."""
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
        """Release the lock, if it is held."""
        if self._file is not None:
            self._file.close()
            self._file = None
