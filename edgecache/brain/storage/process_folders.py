"""Folders of one process each: its lock shows that it lives, and another one ends what it left."""

import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import Final

from edgecache.brain.storage.journal import Journal

LOCK: Final = "lock"
STARTING_S: Final = 60


def make_locked(folder: Path) -> int:
    """Make a folder; return the file whose lock is held until it is closed."""
    folder.mkdir(mode=0o700)
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def end_dead(own: Path, journal: Journal, *, silent_s: float = 0) -> None:
    """Remove the folders of processes that have ended, after adopting their journals.

    own: this process's folder, beside the others. silent_s: only those that began this long ago.
    Raises OSError.
    """
    for folder in own.parent.iterdir():
        if folder != own:
            _end_if_dead(folder, journal, silent_s)


def _end_if_dead(folder: Path, journal: Journal, silent_s: float) -> None:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        # Of a process that is starting, or that died while starting.
        if time.time() - folder.stat().st_mtime > STARTING_S:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        if time.time() - os.fstat(lock).st_mtime < silent_s:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        journal.adopt(folder)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
