"""Download of object bytes from the store of backups to the managed store."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from django.conf import settings

from common.commands import CommandRefused
from edgecache.brain.core.errors import StoreMissing
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.stores import archived_bytes
from edgecache.brain.stores.archived_bytes import Bytes, BytesRestore
from operations.backup import catalogue, control, manifest, sealing
from operations.backup.archive import BackupArchive, fetch_to
from operations.backup.manifest import BackupManifest
from operations.backup.object_upload import MAX_CONCURRENT_OBJECTS, batches, brain_alias
from operations.backup.sealing import DecryptionFailed, Digest, Identity
from operations.backup.work import Say

SAY_EVERY_S: Final = 5.0

Written = tuple[str, list[tuple[EnvironmentKey, str]]]


def forget_absent(listed: Path) -> int:
    """Delete rows of bytes that are in no backup: cached bytes, and objects whose bytes were lost.

    Return the number of these objects.
    """
    if not settings.HAS_CACHE:
        return 0
    present = {each.sha256 for each in _lines(listed)}
    with control.connect(brain_alias()) as server, server.transaction():
        known = {each.sha256 for each in archived_bytes.all_bytes(server)}
        return archived_bytes.forget_cached(server, sorted(known - present))


def download(
    archive: BackupArchive,
    found: BackupManifest,
    listed: Path,
    identities: Sequence[Identity],
    folder: Path,
    say: Say,
) -> int:
    """Write the bytes that the managed store lacks; return the number of files in the backup.

    Raises CommandRefused, Unreachable.
    """
    if not settings.HAS_CACHE:
        return 0
    target = BytesRestore(settings.BRAIN.data_dir, settings.BRAIN.stores)
    key = manifest.key_of(found)
    known = catalogue.objects_of(archive, found) or {}
    count, said_at = 0, time.monotonic()
    with control.connect(brain_alias()) as server:
        target.prepare(server)
        for batch in batches(_lines(listed)):
            missing = target.missing(server, batch)
            wanted = [each for each in batch if each.sha256 in missing]
            written = archive.run(
                _download(archive, target, key, known, wanted, missing, identities, folder)
            )
            for sha256, places in written:
                target.record(server, sha256, places)
            count += len(batch)
            if time.monotonic() - said_at >= SAY_EVERY_S:
                said_at = time.monotonic()
                say(f"{count} of {found.objects} objects.")
    archive.run(target.close())
    return count


async def _download(
    archive: BackupArchive,
    target: BytesRestore,
    key: str,
    known: Mapping[str, Digest],
    wanted: Sequence[Bytes],
    missing: dict[str, list[EnvironmentKey]],
    identities: Sequence[Identity],
    folder: Path,
) -> list[Written]:
    slots = asyncio.Semaphore(MAX_CONCURRENT_OBJECTS)

    async def one(each: Bytes) -> Written:
        async with slots:
            sealed = folder / f"scratch-object-{each.sha256}.age"
            plain = folder / f"scratch-object-{each.sha256}"
            try:
                name = manifest.object_name(key, each.sha256)
                if name not in known or not await _fetch(archive, name, known[name], sealed):
                    raise CommandRefused("backup_altered", f"{name} is missing, or was altered.")
                await asyncio.to_thread(_open, sealed, plain, each, identities)
                return each.sha256, await target.write(each, plain, missing[each.sha256])
            finally:
                sealed.unlink(missing_ok=True)
                plain.unlink(missing_ok=True)

    return await asyncio.gather(*map(one, wanted))


async def _fetch(archive: BackupArchive, name: str, wanted: Digest, target: Path) -> bool:
    try:
        return await fetch_to(archive.store, name, wanted, target)
    except StoreMissing:
        return False


def _open(sealed: Path, plain: Path, each: Bytes, identities: Sequence[Identity]) -> None:
    try:
        sealing.open_file(sealed, plain, identities)
    except DecryptionFailed:
        raise CommandRefused(
            "backup_altered", f"The bytes {each.sha256} cannot be opened."
        ) from None
    if sealing.digest_of(plain) != (each.sha256, each.size):
        raise CommandRefused("backup_altered", f"The bytes {each.sha256} were altered.")


def _lines(listed: Path) -> Iterator[Bytes]:
    with listed.open() as lines:
        for line in lines:
            sha256, size = line.split()
            yield Bytes(sha256, int(size))
