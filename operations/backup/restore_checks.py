"""Checks before a restore writes anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings

from common.commands import CommandRefused
from common.key_fingerprints import fingerprint
from edgecache.brain.core.errors import StoreMissing
from operations.backup import catalogue, control, manifest, sealing
from operations.backup.archive import BackupArchive
from operations.backup.manifest import BackupManifest
from operations.backup.sealing import DecryptionFailed, Identity
from operations.backup.work import EnvironmentPlan, Say, environments_of
from sqlgateway.clusters.servers import address_without_row, administer

# Exists while a restore is unfinished, and contains the backup's id.
SCHEMA: Final = "zonal_restore"
BEGUN: Final = "SELECT backup_id FROM zonal_restore.progress"
HAS_ROWS: Final = "SELECT EXISTS (SELECT FROM {})"
USER_DATA: Final = frozenset({"environments.Organization", "accounts.User", "brain.Bucket"})
OTHER_PROCESSES: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name IN ('zonal', 'zonal-brain')"
)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A backup that can be restored here. is_continued: it continues an interrupted restore."""

    manifest: BackupManifest
    environments: Sequence[EnvironmentPlan]
    is_continued: bool


def check(
    archive: BackupArchive, backup_id: str, identities: Sequence[Identity], folder: Path, say: Say
) -> RestorePlan:
    """Check a backup, this platform, its keys and its servers; writes only scratch files.

    Raises CommandRefused.
    """
    found = catalogue.find(archive, backup_id)
    if found.kind != "platform":
        sentence = "It has one environment: name it with --environment."
        raise CommandRefused("backup_of_environment", sentence)
    _check_version(found)
    _check_keys(found)
    is_continued = _check_empty(found)
    with control.connect("default") as server:
        if control.major_of(server) < found.major:
            raise CommandRefused("server_too_old", f"PostgreSQL {found.major} or later is needed.")
    environments = read_contents(archive, found, identities, folder)
    _check_cluster(environments, is_continued=is_continued)
    say("Reading all of the backup, before anything is written.")
    wrong = catalogue.verify(archive, found, say)
    if wrong:
        sentence = f"{len(wrong)} files are missing or altered, the first is {wrong[0]}."
        raise CommandRefused("backup_altered", sentence, files=wrong)
    return RestorePlan(found, environments, is_continued)


def read_contents(
    archive: BackupArchive, found: BackupManifest, identities: Sequence[Identity], folder: Path
) -> list[EnvironmentPlan]:
    """Return the contents of a backup.

    Raises CommandRefused if none of the private keys decrypts it.
    """
    plain = folder / "scratch-contents"
    try:
        fetch(archive, found, "contents.age", identities, plain)
        return environments_of(plain.read_text())
    finally:
        plain.unlink(missing_ok=True)


def fetch(
    archive: BackupArchive,
    found: BackupManifest,
    name: str,
    identities: Sequence[Identity],
    target: Path,
) -> None:
    """Write a decrypted file of a backup to a local one.

    Raises CommandRefused if it does not match the manifest, or is encrypted to another key.
    """
    sealed = target.with_name(f"{target.name}.age")
    try:
        wanted = found.files.get(name)
        stored = f"{catalogue.folder_of(found.id)}/{name}"
        if wanted is None or not archive.fetch(stored, wanted, sealed):
            raise CommandRefused("backup_altered", f"{name} was altered.")
        target.unlink(missing_ok=True)
        target.touch(mode=0o600)
        sealing.open_file(sealed, target, identities)
    except StoreMissing:
        raise CommandRefused("backup_altered", f"{name} is missing.") from None
    except DecryptionFailed:
        sentence = "The private key does not open this backup."
        raise CommandRefused("identity_differs", sentence) from None
    finally:
        sealed.unlink(missing_ok=True)


def _check_version(found: BackupManifest) -> None:
    here = set(manifest.code_migrations())
    there = manifest.recorded_by(found.migrations)
    if there == here:
        return
    more = sorted(there - here)
    fewer = sorted(here - there)
    side = f"newer: it has {more[0]}" if more else f"older: it lacks {fewer[0]}"
    sentence = (
        f"The backup's version is {side}. Restore with the version that made it, then upgrade."
    )
    raise CommandRefused("version_differs", sentence, missing=more, added=fewer)


def _check_keys(found: BackupManifest) -> None:
    ring = settings.ACCOUNTS.mfa_keys
    if found.mfa_key not in {fingerprint(key) for key in ring}:
        sentence = "ZMFA_SECRET is another one: backup codes and trusted devices depend on it."
        raise CommandRefused("keys_differ", sentence)


def _check_empty(found: BackupManifest) -> bool:
    """Return True if a restore of this backup was begun here.

    Raises CommandRefused if the platform has other data.
    """
    with control.connect("default") as server:
        row = server.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.progress"]).fetchone()
        if row is not None and row[0] is not None:
            begun = server.execute(BEGUN).fetchone()
            if begun is None or begun[0] != found.id:
                other = begun[0] if begun else "unknown"
                sentence = f"A restore of {other} is unfinished here."
                raise CommandRefused("restore_unfinished", sentence)
            return True
    for alias in settings.DATABASES:
        with control.connect(alias) as server:
            _check_database(server)
    return False


def _check_database(server: psycopg.Connection) -> None:
    for table in control.names_of(USER_DATA):
        row = server.execute("SELECT to_regclass(%s)", [table]).fetchone()
        if row is None or row[0] is None:
            continue
        found = server.execute(HAS_ROWS.format(table).encode()).fetchone()
        if found is not None and found[0]:
            sentence = f"This platform is not empty: {table} has rows. Restore into a new one."
            raise CommandRefused("not_empty", sentence)
    refuse_running(server)


def refuse_running(server: psycopg.Connection) -> None:
    """Check that no process of the platform uses a control database. Raises CommandRefused."""
    row = server.execute(OTHER_PROCESSES).fetchone()
    if row is not None and row[0]:
        sentence = f"Stop web, worker and brain first: {row[0]} of their connections are open."
        raise CommandRefused("processes_running", sentence)


def _check_cluster(environments: Sequence[EnvironmentPlan], *, is_continued: bool) -> None:
    url = settings.SQL.cluster_url
    if not url:
        raise CommandRefused("cluster_not_configured", "Set ZSQL_CLUSTER_URL.")
    roles = [each.admin_role for each in environments]
    with administer(address_without_row(url)) as server:
        newest = max((each.major for each in environments), default=0)
        if control.major_of(server) < newest:
            sentence = f"The tenants' cluster must be PostgreSQL {newest} or later."
            raise CommandRefused("server_too_old", sentence)
        taken: Any = server.execute(
            "SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)", [roles]
        ).fetchone()
    if taken[0] and not is_continued:
        sentence = (
            "The tenants' cluster has these environments' roles: it is the former platform's."
        )
        raise CommandRefused("cluster_taken", sentence)
