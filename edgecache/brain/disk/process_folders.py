"""Folders of one process each. A free lock shows that it has ended: another one ends its folder."""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from edgecache.brain.disk.journal import Journal
from edgecache.brain.disk.syncing import sync_folder

log = structlog.get_logger(__name__)

LOCK: Final = "lock"
STARTING_S: Final = 60


class ProcessFolders:
    """This process's folders: of unfinished files (``temp``), and of its journal.

    Every method runs on a thread.
    """

    def __init__(self, root: Path, path_of: Callable[[bytes], Path]) -> None:
        """root: the data directory. path_of: where a hash has its file."""
        name = secrets.token_hex(8)
        self.temp = root / "temp" / name
        # Apart: releases without a journal remove what they find in the others' ``temp``.
        self._journals = root / "journals" / name
        self.journal = Journal(self._journals, self.temp, path_of)
        self._locks: list[int] = []

    def start(self) -> None:
        """Make the folders; end the folders of processes that have ended.

        Raises OSError.
        """
        for folder in (self.temp, self._journals):
            self._locks.append(make_locked(folder))
        self._end_dead()

    def keep(self) -> None:
        """Sync the journal, and end the folders of processes that have ended since.

        Raises OSError.
        """
        try:
            self.journal.sync()
        finally:
            self._end_dead(silent_s=STARTING_S)

    def end(self) -> None:
        """Remove the folders; a journal that cannot be ended stays, to be adopted."""
        try:
            self.journal.end()
            _remove(self._journals)
        except OSError:
            log.exception("journal_left")
        shutil.rmtree(self.temp, ignore_errors=True)
        for lock in self._locks:
            os.close(lock)

    def _end_dead(self, *, silent_s: float = 0) -> None:
        end_dead(self._journals, self.journal.adopt, silent_s=silent_s)
        end_dead(self.temp, _empty, silent_s=silent_s)


def make_locked(folder: Path) -> int:
    """Make a folder durably; return the file that holds its lock until it is closed.

    Raises OSError.
    """
    lock = _take_lock(folder)
    while not _is_at(lock, folder / LOCK):
        # Before it was locked another process considered its owner dead, and removed it.
        os.close(lock)
        lock = _take_lock(folder)
    try:
        for each in (folder, folder.parent):
            sync_folder(each)
    except OSError:
        os.close(lock)
        raise
    return lock


def end_dead(own: Path, end: Callable[[Path], None], *, silent_s: float = 0) -> None:
    """Remove the folders of processes that have ended; what fails is left for the next time.

    own: this process's folder, beside the others. end: called with each of them before, raises
    OSError to keep it. silent_s: only those that began this long ago. Raises OSError.
    """
    for folder in own.parent.iterdir():
        if folder == own:
            continue
        try:
            _end_if_dead(folder, end, silent_s)
        except OSError:
            log.exception("process_folder_left", folder=f"{own.parent.name}/{folder.name}")


def _empty(folder: Path) -> None:
    """Remove the files in a folder except its lock, which is removed with the folder (``_remove``).

    Raises OSError.
    """
    for path in folder.iterdir():
        if path.name != LOCK:
            path.unlink()


def _remove(folder: Path) -> None:
    """Remove an empty folder whose lock this process holds.

    Raises OSError, also if the folder has a file; the process that finds that ends the folder.
    """
    (folder / LOCK).unlink()
    folder.rmdir()


def _end_if_dead(folder: Path, end: Callable[[Path], None], silent_s: float) -> None:
    try:
        # Created if it is missing: its owner has ended, or waits for it (``make_locked``).
        lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        # Another process has ended it.
        return
    try:
        if time.time() - os.fstat(lock).st_mtime < silent_s:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(lock, folder / LOCK):
            end(folder)
            _remove(folder)
    except BlockingIOError:
        return
    finally:
        os.close(lock)


def _take_lock(folder: Path) -> int:
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            # Removed as one that had no lock.
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
