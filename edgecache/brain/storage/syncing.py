"""Bytes and names that last: written whole, and synced."""

import os
from pathlib import Path


def write_whole(file: int, data: bytes) -> None:
    """Write all of some bytes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
