"""The bytes of the built-in origin: they are durable before a row names them.

Small bodies in one step, through the journal (``write``). Others in two: ``stage`` under temporary
names, before the transaction; ``place`` under their hashes, inside it, while the blobs' rows are
locked. Each takes many bodies in one hand-over to a thread.
"""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import structlog

from edgecache.brain.core.values import BlobManifest, StagedFile
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.data_directory import DataDirectory, file_error
from edgecache.brain.disk.segments import JOURNALED_BYTES, Body
from edgecache.brain.disk.syncing import move, sync_folder, write_new

log = structlog.get_logger(__name__)


class DurableBytes:
    """Files in the data directory: the only bytes, or copies of a store's."""

    def __init__(self, data_directory: DataDirectory) -> None:
        self._data_directory = data_directory

    async def stage(
        self, bodies: Sequence[StagedFile | BufferedBody], *, is_durable: bool = True
    ) -> list[StagedFile | Exception]:
        """Return the bodies as files, or the errors of those that could not be written.

        is_durable: False for copies of a store's bytes.
        """
        buffered = [body for body in bodies if isinstance(body, BufferedBody)]
        if not buffered:
            return [body for body in bodies if isinstance(body, StagedFile)]
        written = iter(
            await self._data_directory.run(
                _write_all, self._data_directory.temp, buffered, is_durable=is_durable
            )
        )
        return [body if isinstance(body, StagedFile) else next(written) for body in bodies]

    async def write(self, bodies: Sequence[BufferedBody]) -> list[Exception | None]:
        """Make small bodies durable and readable; return the failure of each.

        The caller has locked the blobs' rows, as for ``place``.
        """
        results = await self._data_directory.run(self._write_journaled, bodies)
        if self._data_directory.journal.needs_sync_now:
            self._data_directory.sync_soon()
        return results

    def has_room(self, bodies: Sequence[BufferedBody]) -> bool:
        """True if the journal has room for small bodies; otherwise they should be staged.

        Files are then synced before the transaction: a sync may take longer than it may.
        """
        has_room = self._data_directory.journal.has_room(_journaled(bodies))
        if not has_room:
            self._data_directory.sync_soon()
        return has_room

    async def place(self, files: Sequence[StagedFile]) -> list[Exception | None]:
        """Make the bytes readable by their hash; return the failure of each, None if it is durable.

        The caller has locked the blobs' rows, so garbage collection removes none of these files.
        """
        errors = await self._data_directory.run(self._place, files)
        for staged, error in zip(files, errors, strict=True):
            if error is None:
                self._data_directory.count_out(staged.path)
        return errors

    async def keep_copies(self, files: Sequence[StagedFile]) -> None:
        """Keep bytes that a store has, so that workers can have them; they may be evicted."""
        if files:
            await self._data_directory.run(self._keep_copies, files)
            for staged in files:
                self._data_directory.count_out(staged.path)

    def _write_journaled(self, bodies: Sequence[BufferedBody]) -> list[Exception | None]:
        try:
            has_room = self._data_directory.journal.append(_journaled(bodies))
        except OSError:
            # Some of them may have been written.
            has_room = False
        if has_room:
            return [None] * len(bodies)
        return self._write_files(bodies)

    def _write_files(self, bodies: Sequence[BufferedBody]) -> list[Exception | None]:
        written = _write_all(self._data_directory.temp, bodies, is_durable=True)
        staged = [each for each in written if isinstance(each, StagedFile)]
        placed = iter(self._place(staged))
        errors: list[Exception | None] = [
            next(placed) if isinstance(each, StagedFile) else each for each in written
        ]
        for each in staged:
            # Placed files have been moved; the others could not be placed.
            each.path.unlink(missing_ok=True)
        return errors

    def _place(self, files: Sequence[StagedFile]) -> list[Exception | None]:
        targets = [self._data_directory.origin_path(staged.manifest.sha256) for staged in files]
        return _place_all([staged.path for staged in files], targets)

    def _keep_copies(self, files: Sequence[StagedFile]) -> None:
        for staged in files:
            try:
                self._data_directory.keep_copy(staged)
            except OSError:
                log.warning("copy_not_kept", sha256=staged.manifest.sha256.hex())
                staged.path.unlink(missing_ok=True)

    def as_placed_file(self, manifest: BlobManifest) -> StagedFile:
        """Return a body that was placed, to be placed again."""
        return StagedFile(self._data_directory.origin_path(manifest.sha256), manifest)

    async def discard(self, body: StagedFile | BufferedBody) -> None:
        """Remove a body that was not placed."""
        await self._data_directory.discard(body)

    async def drop_parts(self, names: list[str]) -> None:
        """Remove the files of parts from which an object was made."""
        await self._data_directory.drop_parts(names)


def is_journaled(body: StagedFile | BufferedBody) -> bool:
    """True if ``write`` takes a body."""
    return isinstance(body, BufferedBody) and len(body.data) <= JOURNALED_BYTES


def _journaled(bodies: Sequence[BufferedBody]) -> list[Body]:
    return [(body.manifest.sha256, body.data) for body in bodies]


def _write_all(
    folder: Path, bodies: Sequence[BufferedBody], *, is_durable: bool
) -> list[StagedFile | Exception]:
    results: list[StagedFile | Exception] = []
    for body in bodies:
        path = folder / secrets.token_hex(16)
        try:
            write_new(path, body.data, is_durable=is_durable)
            results.append(StagedFile(path, body.manifest))
        except OSError as exc:
            path.unlink(missing_ok=True)
            results.append(file_error(exc))
    return results


def _place_all(paths: Sequence[Path], targets: Sequence[Path]) -> list[Exception | None]:
    errors: list[Exception | None] = [None] * len(paths)
    folders: dict[Path, list[int]] = {}
    for number, (path, target) in enumerate(zip(paths, targets, strict=True)):
        try:
            if path == target:
                # A transaction that failed has placed it. Its removal must see that the file has
                # changed.
                os.utime(path)
            else:
                move(path, target)
        except OSError as exc:
            errors[number] = file_error(exc)
        else:
            folders.setdefault(target.parent, []).append(number)
    # The names of a group's files in one folder become durable together.
    for folder, numbers in folders.items():
        try:
            sync_folder(folder)
        except OSError as exc:
            for number in numbers:
                errors[number] = file_error(exc)
    return errors
