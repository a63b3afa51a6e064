"""Zip archives of records, limited in size and time."""

import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final
from uuid import UUID

# Disk space that is always left free.
RESERVE_BYTES: Final = 2**29
BYTES_BETWEEN_CHECKS: Final = 2**20

Write = Callable[[bytes], Any]


class ArchiveRefused(Exception):
    """The archive would be too large or take too long; its text says which."""


class ZipWriter:
    """A zip archive that is being written.

    limit_bytes: of the file. deadline: in ``time.monotonic``. notes: sentences about missing data.
    """

    def __init__(self, file: IO[bytes], folder: Path, *, limit_bytes: int, deadline: float) -> None:
        self._file = file
        self._folder = folder
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._limit_bytes = limit_bytes
        self.deadline = deadline
        self.notes: list[str] = []
        self._names: list[str] = []

    def records(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add a file with one JSON object per line."""
        with self.entry(name) as write:
            for row in rows:
                write(json.dumps(row, default=_plain, ensure_ascii=False).encode() + b"\n")

    @contextmanager
    def entry(self, name: str, *, is_compressed: bool = True) -> Iterator[Write]:
        """Add a file that the block writes.

        name: consists of constants and checked ids, never of a tenant's text.
        Raises ArchiveRefused.
        """
        self.check()
        info = zipfile.ZipInfo(name, date_time=time.gmtime()[:6])
        info.compress_type = zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED
        info.external_attr = 0o600 << 16
        unchecked = 0
        with self._zip.open(info, "w", force_zip64=True) as opened:

            def write(data: bytes) -> None:
                nonlocal unchecked
                opened.write(data)
                unchecked += len(data)
                if unchecked >= BYTES_BETWEEN_CHECKS:
                    unchecked = 0
                    self.check()

            yield write
        self._names.append(name)

    def note(self, sentence: str) -> None:
        """Add a sentence about missing data to the archive's manifest."""
        self.notes.append(sentence)

    def check(self) -> None:
        """Raise ArchiveRefused if the archive exceeds its size or time."""
        if time.monotonic() > self.deadline:
            raise ArchiveRefused("It took too long.")
        if self._file.tell() > self._limit_bytes:
            raise ArchiveRefused(f"It is larger than {self._limit_bytes} bytes.")
        if shutil.disk_usage(self._folder).free < RESERVE_BYTES:
            raise ArchiveRefused("The platform has no room for it at the moment.")

    def abandon(self) -> None:
        """Close without the manifest; the incomplete file is discarded."""
        # Otherwise the ZipFile would write its directory into the closed file when it is
        # garbage-collected.
        self._zip.fp = None

    def close(self, facts: Mapping[str, Any]) -> None:
        """Add the manifest and close the archive."""
        manifest = {**facts, "files": self._names, "missing": self.notes}
        with self.entry("manifest.json") as write:
            write(json.dumps(manifest, default=_plain, indent=2).encode() + b"\n")
        self._zip.close()


def unfinished_of(path: Path) -> Path:
    """Return the path of an archive until it is complete."""
    return path.with_name(f"{path.name}.unfinished")


@contextmanager
def new_archive(path: Path, *, limit_bytes: int, timeout_s: float) -> Iterator[ZipWriter]:
    """Write an archive that only this user can read; it is complete or does not exist.

    Raises ArchiveRefused; OSError if the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = unfinished_of(path)
    # The file of a killed process.
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            deadline = time.monotonic() + timeout_s
            archive = ZipWriter(file, path.parent, limit_bytes=limit_bytes, deadline=deadline)
            try:
                yield archive
            except BaseException:
                archive.abandon()
                raise
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _plain(value: object) -> object:
    """Return a value in a form that JSON can represent."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date | UUID):
        return str(value)
    if isinstance(value, Decimal):
        # Sums of 64-bit columns; many JSON parsers lose digits of large decimals.
        return int(value) if value == value.to_integral_value() else str(value)
    raise TypeError(f"{type(value).__name__} is not of a record")
