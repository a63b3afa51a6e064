"""Listing, verifying and deleting the backups in the store."""

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from common.commands import CommandRefused
from edgecache.brain.core.errors import StoreMissing
from operations.backup import manifest
from operations.backup.archive import BackupArchive
from operations.backup.manifest import BackupManifest, ManifestAltered, OtherFormat, OtherKeys
from operations.backup.object_upload import read_names
from operations.backup.sealing import Digest
from operations.backup.work import Say

MANIFEST: Final = "manifest.json"
# The format of ids from making.py, so that no id from an administrator or the store is a path.
ID: Final = re.compile(r"[0-9TZ.]+-[0-9a-f]+")
UNREADABLE: Final = {"altered", "other_keys", "other_version"}
# Older backups are not continued.
UNFINISHED_FOR: Final = timedelta(hours=48)
SAY_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class BackupEntry:
    """A backup.

    state: ``complete``, ``unfinished``, ``altered``, ``other_keys`` or ``other_version``.
    """

    id: str
    state: str
    changed_at: datetime
    names: Sequence[str]
    manifest: BackupManifest | None = None


def find_all(archive: BackupArchive) -> list[BackupEntry]:
    """Return the backups, newest first. Raises Unreachable."""
    groups: dict[str, list[tuple[str, datetime]]] = {}
    for name, changed_at in archive.names("backups"):
        groups.setdefault(name.split("/")[1], []).append((name, changed_at))
    return [_listed(archive, key, groups[key]) for key in sorted(groups, reverse=True)]


def find(archive: BackupArchive, backup_id: str) -> BackupManifest:
    """Return the manifest of a complete backup; ``latest`` selects the newest one.

    Raises CommandRefused, Unreachable.
    """
    if backup_id == "latest":
        listed = find_all(archive)
        whole = [each.manifest for each in listed if each.manifest is not None]
        others = [each for each in listed if each.state in UNREADABLE]
        if not whole and others:
            # That of the newest says what to set.
            return find(archive, others[0].id)
        if not whole:
            raise CommandRefused(
                "backup_not_found", "The store has no complete backup of this platform."
            )
        return whole[0]
    try:
        return _read(archive, backup_id)
    except StoreMissing:
        sentence = f"There is no complete backup {backup_id}: see `manage.py backup --list`."
        raise CommandRefused("backup_not_found", sentence) from None
    except OtherKeys:
        sentence = f"{backup_id} was made with other keys: set the ZSECRET_KEYS of that time."
        raise CommandRefused("keys_differ", sentence) from None
    except OtherFormat:
        sentence = (
            f"Another version of Zonal made {backup_id}: restore with that one, then upgrade."
        )
        raise CommandRefused("version_differs", sentence) from None
    except ManifestAltered:
        raise CommandRefused(
            "backup_altered", f"The manifest of {backup_id} was altered."
        ) from None


def objects_of(archive: BackupArchive, found: BackupManifest | None) -> dict[str, Digest] | None:
    """Return the object bytes of a backup; None if their list was altered or is missing."""
    if found is None or "objects.txt" not in found.files:
        return None
    try:
        listed = found.files["objects.txt"]
        data = archive.read(f"{folder_of(found.id)}/objects.txt", limit_bytes=listed.size)
    except StoreMissing:
        return None
    if hashlib.sha256(data).hexdigest() != listed.sha256:
        return None
    return read_names(data.decode())


def known_objects(archive: BackupArchive) -> dict[str, Digest]:
    """Return the digests of the object bytes in the store, from complete backups."""
    known: dict[str, Digest] = {}
    for each in find_all(archive):
        if _is_platform(each):
            known.update(objects_of(archive, each.manifest) or {})
    return known


def verify(
    archive: BackupArchive, found: BackupManifest, say: Say, *, one_in: int = 1
) -> list[str]:
    """Read the files of a backup; return the names of missing or altered ones.

    one_in: read this fraction of the objects, others each day, and check that the rest exists.
    Raises Unreachable.
    """
    objects = (objects_of(archive, found) if found.kind == "platform" else {}) or {}
    wanted = {f"{folder_of(found.id)}/{name}": one for name, one in found.files.items()}
    wrong = []
    if one_in > 1:
        present = {each.name for each in archive.names("objects")}
        wrong = [name for name in objects if name not in present]
        today = datetime.now(UTC).toordinal() % one_in
        objects = {
            name: one
            for name, one in objects.items()
            if name in present and _number_of(name) % one_in == today
        }
    wanted |= objects
    said_at = time.monotonic()
    for count, (name, digest) in enumerate(wanted.items(), start=1):
        try:
            is_right = archive.holds(name, digest)
        except StoreMissing:
            is_right = False
        if not is_right:
            wrong.append(name)
        if time.monotonic() - said_at >= SAY_EVERY_S:
            said_at = time.monotonic()
            say(f"{count} of {len(wanted)} files read.")
    return wrong


def prune(
    archive: BackupArchive, *, keep: int, protected: str, is_dry: bool = False
) -> tuple[list[str], int]:
    """Delete all but the newest complete backups, and object bytes that no other backup needs.

    protected: the id of a backup in progress. Unreadable backups are kept and, as long as there are
    any, so are all object bytes. is_dry: delete nothing. Return the deleted ids, and the number of
    deleted object files.
    Raises Unreachable.
    """
    listed = find_all(archive)
    whole = [each for each in listed if each.manifest is not None and _is_platform(each)]
    single = [each for each in listed if each.manifest is not None and not _is_platform(each)]
    old = datetime.now(UTC) - UNFINISHED_FOR
    left = [
        each
        for each in listed
        if each.state == "unfinished" and each.id != protected and each.changed_at < old
    ]
    gone = [*whole[keep:], *single[keep:], *left]
    for each in () if is_dry else gone:
        # The manifest first, so that a partly deleted backup does not look complete.
        names = sorted(each.names, key=lambda name: not name.endswith(f"/{MANIFEST}"))
        archive.delete(names[:1])
        archive.delete(names[1:])
    if any(each.state in UNREADABLE for each in listed):
        return [each.id for each in gone], 0
    return [each.id for each in gone], _prune_objects(archive, whole[:keep], is_dry=is_dry)


def _number_of(name: str) -> int:
    """Return a number for an object's file, evenly distributed."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def folder_of(backup_id: str) -> str:
    """Return the folder of a backup in the store."""
    return f"backups/{backup_id}"


def _is_platform(each: BackupEntry) -> bool:
    return each.manifest is not None and each.manifest.kind == "platform"


def _listed(archive: BackupArchive, key: str, files: Sequence[tuple[str, datetime]]) -> BackupEntry:
    names = [name for name, _ in files]
    changed_at = max(changed for _, changed in files)
    if f"{folder_of(key)}/{MANIFEST}" not in names:
        return BackupEntry(key, "unfinished", changed_at, names)
    try:
        return BackupEntry(key, "complete", changed_at, names, _read(archive, key))
    except OtherKeys:
        return BackupEntry(key, "other_keys", changed_at, names)
    except OtherFormat:
        return BackupEntry(key, "other_version", changed_at, names)
    except (ManifestAltered, StoreMissing):
        return BackupEntry(key, "altered", changed_at, names)


def _read(archive: BackupArchive, backup_id: str) -> BackupManifest:
    if not ID.fullmatch(backup_id):
        raise StoreMissing
    name = f"{folder_of(backup_id)}/{MANIFEST}"
    found = manifest.read(archive.read(name, limit_bytes=manifest.LIMIT_BYTES))
    # Otherwise an old backup could be presented as a newer one.
    if found.id != backup_id:
        raise ManifestAltered
    return found


def _prune_objects(archive: BackupArchive, kept: Sequence[BackupEntry], *, is_dry: bool) -> int:
    named: set[str] = set()
    for each in kept:
        found = objects_of(archive, each.manifest)
        if found is None:
            # It is not known which object bytes it needs.
            return 0
        named.update(found)
    gone = [each.name for each in archive.names("objects") if each.name not in named]
    if not is_dry:
        archive.delete(gone)
    return len(gone)
