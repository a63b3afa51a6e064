"""The manifest: the contents of a backup, authenticated by the platform that made it."""

import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from common.commands import CommandRefused
from common.crypto import keyed_digest
from common.key_fingerprints import fingerprint
from common.pending_migrations import pending_migrations
from operations.backup.sealing import Digest

FORMAT: Final = 1
# A manifest has about 120 bytes for each environment.
LIMIT_BYTES: Final = 64 * 2**20
PURPOSE: Final = "zonal backup"


class ManifestAltered(Exception):
    """The manifest is damaged, or was not authenticated with a key of this platform."""


class OtherFormat(Exception):
    """The manifest has another format than this version's."""


class OtherKeys(Exception):
    """The manifest is of a platform with other ZSECRET_KEYS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """A complete backup.

    kind: ``platform``, or ``environment`` for the database of one. migrations: of the code that
    made it, as ``code_migrations``. major: PostgreSQL's, of the control database. mfa_key, key:
    fingerprints of the keys that a restore needs. files: by name within the backup. environments,
    failed, objects, object_bytes: counts; failed environments have no dump.
    """

    id: str
    kind: str
    started_at: str
    finished_at: str
    migrations: Sequence[str]
    major: int
    key: str
    mfa_key: str
    files: Mapping[str, Digest]
    environments: int
    failed: int
    objects: int
    object_bytes: int
    format: int = field(default=FORMAT)

    @property
    def started(self) -> datetime:
        """The time of the control database's snapshot, or shortly before."""
        return datetime.fromisoformat(self.started_at)

    @property
    def size(self) -> int:
        """Return the total size of its files, without objects."""
        return sum(digest.size for digest in self.files.values())

    def facts(self) -> dict[str, Any]:
        """Return the fields that a list of backups shows."""
        return {
            "id": self.id,
            "kind": self.kind,
            "started_at": self.started_at,
            "environments": self.environments,
            "failed": self.failed,
            "objects": self.objects,
            "object_bytes": self.object_bytes,
            "bytes": self.size,
        }


def write(manifest: BackupManifest) -> bytes:
    """Return a manifest's bytes."""
    body = json.dumps(asdict(manifest), sort_keys=True)
    code = keyed_digest(settings.SECRET_KEYS[0], PURPOSE, "manifest", body).hex()
    return json.dumps({"key": manifest.key, "mac": code, "body": body}).encode()


def read(data: bytes) -> BackupManifest:
    """Read a manifest that this platform, or another one with its keys, has written.

    Raises ManifestAltered, OtherKeys, OtherFormat.
    """
    try:
        given = json.loads(data)
        key, code, body = str(given["key"]), bytes.fromhex(given["mac"]), str(given["body"])
        body.encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ManifestAltered from None
    keys = [each for each in settings.SECRET_KEYS if fingerprint(each) == key]
    if not keys:
        raise OtherKeys
    if not hmac.compare_digest(keyed_digest(keys[0], PURPOSE, "manifest", body), code):
        raise ManifestAltered
    fields = json.loads(body)
    if fields.get("format") != FORMAT:
        raise OtherFormat
    fields["files"] = {name: Digest(*digest) for name, digest in fields["files"].items()}
    return BackupManifest(**fields)


def object_name(key: str, sha256: str) -> str:
    """Return the name of an object's bytes in the store."""
    name = keyed_digest(key, PURPOSE, "object", sha256).hex()
    return f"objects/{name[:2]}/{name}.age"


def key_of(manifest: BackupManifest) -> str:
    """Return the key of ZSECRET_KEYS that a backup was made with."""
    return next(key for key in settings.SECRET_KEYS if fingerprint(key) == manifest.key)


def applied_migrations() -> list[str]:
    """Return the migrations of the code, all of which are applied to each control database.

    Raises CommandRefused if one is not applied, because code and tables do not match.
    """
    for alias in settings.DATABASES:
        if pending_migrations(alias):
            raise CommandRefused(
                "migrations_pending",
                f"Run `manage.py {migrate_command(alias)}` first, or finish the restore.",
            )
    return code_migrations()


def migrate_command(alias: str) -> str:
    """Return the command that migrates a control database."""
    return "migrate" if alias == DEFAULT_DB_ALIAS else f"migrate --database {alias}"


def code_migrations() -> list[str]:
    """Return the names that Django records once all migrations of this code are applied.

    Names that a squashed migration replaces are among them: Django takes it as applied only with
    all of these.
    """
    disk = MigrationLoader(None).disk_migrations
    replaced = {name for migration in disk.values() for name in migration.replaces}
    return sorted(f"{app}.{name}" for app, name in {*disk, *replaced})


def recorded_by(names: Iterable[str]) -> set[str]:
    """Return the names that Django has recorded where these migrations are applied.

    A squashed migration of this code is applied when all that it replaces are, and the reverse.
    """
    recorded = {(app, name) for app, _, name in (each.partition(".") for each in names)}
    squashed = {
        key: set(migration.replaces)
        for key, migration in MigrationLoader(None).disk_migrations.items()
        if migration.replaces
    }
    known = 0
    while known != len(recorded):
        known = len(recorded)
        for key, replaced in squashed.items():
            if key in recorded or replaced <= recorded:
                recorded |= {key, *replaced}
    return {f"{app}.{name}" for app, name in recorded}


def record_migrations(alias: str) -> None:
    """Record all migrations of this code as applied to a control database."""
    recorder = MigrationRecorder(connections[alias])
    there = {f"{app}.{name}" for app, name in recorder.applied_migrations()}
    for each in code_migrations():
        if each not in there:
            recorder.record_applied(*each.split(".", 1))
