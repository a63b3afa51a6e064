"""Hashing a stored file again."""

import errno
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from edgecache.worker.store.files import Files

PIECE_BYTES: Final = 1 << 20


def is_right(
    files: Files,
    sha256: bytes,
    *,
    rate_bytes: int | None = None,
    rest: Callable[[float], object] = time.sleep,
) -> int | None:
    """Hash a file again; return its size, or None when it is not what its name says.

    A file that the disk can't read is not right. rate_bytes: the most to read in a second.
    Raises OSError for what is no fault of the file's (too many open files).
    """
    digest, size, began = hashlib.sha256(), 0, time.monotonic()
    try:
        with Path(files.path(sha256)).open("rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
                if rate_bytes:
                    rest(max(0.0, began + size / rate_bytes - time.monotonic()))
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE}:
            raise
        return None
    return size if digest.digest() == sha256 else None
