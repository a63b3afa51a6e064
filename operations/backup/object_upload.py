"""Upload of object bytes to the store of backups: each once, shared by all backups."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import psycopg
from django.conf import settings

from edgecache.brain.stores import archived_bytes
from edgecache.brain.stores.archived_bytes import Bytes, BytesLocation, Sources
from operations.backup import control, manifest, sealing
from operations.backup.archive import BackupArchive
from operations.backup.sealing import Digest
from operations.backup.work import Say, Work

MAX_CONCURRENT_OBJECTS: Final = 8
BATCH: Final = 256
SAY_EVERY_S: Final = 5.0


@dataclass(slots=True)
class TransferResult:
    """The result of an upload. known: the bytes in the store. missing: hashes of lost bytes."""

    known: dict[str, Digest] = field(default_factory=dict)
    uploaded: int = 0
    present: int = 0
    missing: set[str] = field(default_factory=set)


def brain_alias() -> str:
    """Return the alias of the database with the brain's tables."""
    return "brain" if "brain" in settings.DATABASES else "default"


def write_list(connection: psycopg.Connection, work: Work) -> tuple[int, int]:
    """Write the list of a snapshot's object bytes; return their number and total size."""
    count = total = 0
    with work.objects.open("w") as lines:
        for each in archived_bytes.all_bytes(connection) if settings.HAS_CACHE else ():
            lines.write(f"{each.sha256} {each.size}\n")
            count, total = count + 1, total + each.size
    return count, total


def upload(
    archive: BackupArchive, work: Work, before: Mapping[str, Digest], say: Say
) -> TransferResult:
    """Upload the bytes that the store does not have yet.

    before: the known bytes from earlier backups. Raises Unreachable.
    """
    key = settings.SECRET_KEYS[0]
    present = {each.name for each in archive.names("objects")}
    known = {
        name: one for name, one in {**before, **work.objects_done()}.items() if name in present
    }
    sources = Sources(settings.BRAIN.data_dir, settings.BRAIN.stores)
    moved = TransferResult(known=known)
    said_at = time.monotonic()
    with control.connect(brain_alias()) as connection:
        for batch in batches(work.all_objects()):
            new = [each for each in batch if manifest.object_name(key, each.sha256) not in known]
            moved.present += len(batch) - len(new)
            found = archived_bytes.locations(connection, new)
            archive.run(_upload(archive, work, sources, new, found, moved))
            if time.monotonic() - said_at >= SAY_EVERY_S:
                said_at = time.monotonic()
                say(f"{moved.uploaded + moved.present} objects, {moved.uploaded} of them new.")
    archive.run(sources.close())
    return moved


def finish_lists(archive: BackupArchive, work: Work, folder: str, moved: TransferResult) -> None:
    """Write the lists of the backup's object bytes."""
    key = settings.SECRET_KEYS[0]
    plain, names, sealed = (work.scratch(name) for name in ("objects", "names", "sealed-objects"))
    with plain.open("w") as lines, names.open("w") as public:
        for each in work.all_objects():
            if each.sha256 not in moved.missing:
                lines.write(f"{each.sha256} {each.size}\n")
                name = manifest.object_name(key, each.sha256)
                public.write(f"{name} {moved.known[name].sha256} {moved.known[name].size}\n")
    digest = sealing.seal_file(plain, sealed)
    archive.put(f"{folder}/objects.age", sealed)
    work.add("objects.age", digest)
    archive.put(f"{folder}/objects.txt", names)
    work.add("objects.txt", sealing.digest_of(names))


def read_names(lines: str) -> dict[str, Digest]:
    """Return the names in ``objects.txt``."""
    rows = (line.split() for line in lines.splitlines())
    return {name: Digest(sha256, int(size)) for name, sha256, size in rows}


def batches(found: Iterator[Bytes]) -> Iterator[list[Bytes]]:
    """Yield batches of some hundred items."""
    while batch := list(islice(found, BATCH)):
        yield batch


async def _upload(
    archive: BackupArchive,
    work: Work,
    sources: Sources,
    wanted: Sequence[Bytes],
    found: dict[str, BytesLocation],
    moved: TransferResult,
) -> None:
    slots = asyncio.Semaphore(MAX_CONCURRENT_OBJECTS)

    async def one(each: Bytes) -> None:
        async with slots:
            plain = work.scratch(f"object-{each.sha256}")
            try:
                if not await sources.copy(each, found.get(each.sha256), plain):
                    moved.missing.add(each.sha256)
                    return
                name = manifest.object_name(settings.SECRET_KEYS[0], each.sha256)
                moved.known[name] = await _put(archive, name, plain)
                work.add_object(name, moved.known[name])
                moved.uploaded += 1
            finally:
                plain.unlink(missing_ok=True)

    await asyncio.gather(*map(one, wanted))


async def _put(archive: BackupArchive, name: str, plain: Path) -> Digest:
    sealed = plain.with_name(f"{plain.name}.age")
    try:
        digest = await asyncio.to_thread(sealing.seal_file, plain, sealed)
        await archive.store.put(name, sealed, digest.size)
        return digest
    finally:
        sealed.unlink(missing_ok=True)
