"""Durable writes and renames of files."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600


def write_whole(file: int, data: bytes) -> None:
    """Write all of some bytes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def write_new(path: Path, data: bytes, *, is_durable: bool) -> None:
    """Write a file that does not exist yet."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        write_whole(file, data)
        if is_durable:
            os.fsync(file)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(folders: Iterable[Path]) -> None:
    """Create folders durably, also other processes' folders, which may not have been synced yet."""
    parents = set()
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        parents.add(folder.parent)
    for parent in parents:
        sync_folder(parent)


def move(path: Path, target: Path) -> None:
    """Rename a file; the target's folder is made if it does not exist."""
    try:
        path.replace(target)
    except FileNotFoundError:
        make_folders([target.parent])
        path.replace(target)


def bytes_below(folder: Path) -> int:
    """Return the bytes of the files in a folder's folders; other processes may remove some."""
    found = 0
    for path in folder.glob("*/*"):
        with contextlib.suppress(FileNotFoundError):
            found += path.stat().st_size
    return found
