"""Folders in memory, for programs that sync what they write: no test takes the power away."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - folders of random names are made in it
# In some containers it has 64 MiB.
WANTED_BYTES: Final = 2**30


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Yield a folder that is removed after the block; it is on the disk where memory is small."""
    has_room = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > WANTED_BYTES
    place = SHARED_MEMORY if has_room else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
