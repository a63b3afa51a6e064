"""The manifest: the contents of a backup, authenticated by the platform that made it."""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from platform_site.backup.sealing import Digest
from platform_site.lib.commands import CommandRefused
from platform_site.lib.crypto import keyed_digest

FORMAT: Final = 1
# A manifest has about 120 bytes for each environment.
LIMIT_BYTES: Final = 64 * 2**20
PURPOSE: Final = "zonal backup"
FINGERPRINT_CHARS: Final = 16


class ManifestAltered(Exception):
    """The manifest is damaged, or was not authenticated with a key of this platform."""


class OtherFormat(Exception):
    """The manifest has another format than this version's."""


class OtherKeys(Exception):
    """The manifest is of a platform with other ZSECRET_KEYS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A complete backup.

    kind: ``platform``, or ``environment`` for the database of one. migrations: of the code that
    made it. major: PostgreSQL's, of the control database. mfa_key, key: fingerprints of the keys
    that a restore needs. files: by name within the backup. environments, failed, objects,
    object_bytes: counts; failed environments have no dump.
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


def write(manifest: Manifest) -> bytes:
    """Return a manifest's bytes."""
    body = json.dumps(asdict(manifest), sort_keys=True)
    code = keyed_digest(settings.SECRET_KEYS[0], PURPOSE, "manifest", body).hex()
    return json.dumps({"key": manifest.key, "mac": code, "body": body}).encode()


def read(data: bytes) -> Manifest:
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
    return Manifest(**fields)


def fingerprint(key: str) -> str:
    """Return a digest that identifies keys without revealing them, because they are random."""
    return keyed_digest(key, PURPOSE, "key").hex()[:FINGERPRINT_CHARS]


def object_name(key: str, sha256: str) -> str:
    """Return the name of an object's bytes in the store."""
    name = keyed_digest(key, PURPOSE, "object", sha256).hex()
    return f"objects/{name[:2]}/{name}.age"


def key_of(manifest: Manifest) -> str:
    """Return the key of ZSECRET_KEYS that a backup was made with."""
    return next(key for key in settings.SECRET_KEYS if fingerprint(key) == manifest.key)


def applied_migrations() -> list[str]:
    """Return the migrations of the code, all of which are applied.

    Raises CommandRefused if one is not applied, because code and tables do not match.
    """
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandRefused(
            "migrations_pending", "Run `manage.py migrate` first, or finish the restore."
        )
    return code_migrations()


def code_migrations() -> list[str]:
    """Return the migrations of this code, applied or not."""
    loader = MigrationLoader(connection)
    return sorted(f"{app}.{name}" for app, name in loader.disk_migrations)
