"""Restoring a backup of the platform into an empty one, and continuing an interrupted restore.

Order: the control plane in one transaction, then disabling it, then the environments, then the
object bytes. The applied migrations are written last, so that until then ``/readyz``, ``doctor``
and ``migrate`` treat the platform as not set up.

PostgreSQL's own point-in-time recovery restores all rows: what a restore would omit is deleted
afterwards.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection, connections, transaction
from django.utils import timezone

from audit import trail
from common.commands import CommandRefused
from operations.audit_tags import OperationTag
from operations.backup import control, manifest, object_download, restore_checks
from operations.backup.archive import BackupArchive
from operations.backup.making import WITHOUT_DATA
from operations.backup.manifest import BackupManifest
from operations.backup.restore_checks import SCHEMA, RestorePlan
from operations.backup.sealing import Identity
from operations.backup.work import EnvironmentPlan, Say, retry_while_unavailable
from sqlgateway import names
from sqlgateway.clusters import servers
from sqlgateway.databases import tenant_databases
from sqlgateway.databases.copies import reason_for_tenant, restores
from sqlgateway.models import Database

CONTROL_STEP: Final = "control"
DISABLED_STEP: Final = "inert"
REPORT_EVERY_S: Final = 5.0


@dataclass(slots=True)
class PlatformRestoreResult:
    """The result of a restore. failed: environments that could not be restored, with the reason.

    without_data: copies that were unfinished or had failed; they are shown as failed.
    """

    manifest: BackupManifest
    environments: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    without_data: list[dict[str, Any]] = field(default_factory=list)
    objects: int = 0
    lost_objects: int = 0
    payouts_waiting: int = 0


def restore(
    archive: BackupArchive,
    checked: RestorePlan,
    identities: Sequence[Identity],
    folder: Path,
    say: Say,
) -> PlatformRestoreResult:
    """Restore a backup; every step may be repeated. Raises CommandRefused, EngineUnavailable."""
    found = checked.manifest
    result = PlatformRestoreResult(found)
    progress = RestoreProgress(found.id)
    progress.begin()
    for alias in settings.DATABASES:
        with progress.step(f"{CONTROL_STEP}:{alias}") as is_due:
            if is_due:
                say(f"Restoring the control database ({alias}).")
                _control(archive, found, alias, identities, folder)
    listed = folder / "objects"
    restore_checks.fetch(archive, found, "objects.age", identities, listed)
    with progress.step(DISABLED_STEP) as is_due:
        if is_due:
            result.lost_objects = object_download.forget_absent(listed)
            result.payouts_waiting = hold_payouts()
    _environments(archive, checked, identities, folder, progress, result, say)
    result.objects = object_download.download(archive, found, listed, identities, folder, say)
    progress.end(found)
    return result


class RestoreProgress:
    """The completed steps, stored in the platform's own database."""

    def __init__(self, backup_id: str) -> None:
        self._backup_id = backup_id

    def begin(self) -> None:
        """Mark the platform as being restored."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {SCHEMA}.progress (backup_id text PRIMARY KEY)"
            )
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {SCHEMA}.done (step text PRIMARY KEY)")
            cursor.execute(
                f"INSERT INTO {SCHEMA}.progress VALUES (%s) ON CONFLICT DO NOTHING",  # noqa: S608 - a constant
                [self._backup_id],
            )

    @contextmanager
    def step(self, name: str) -> Iterator[bool]:
        """Yield True if a step has to be done; it is marked as done when the block ends."""
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT FROM {SCHEMA}.done WHERE step = %s", [name])
            is_due = cursor.fetchone() is None
        yield is_due
        if is_due:
            with connection.cursor() as cursor:
                cursor.execute(f"INSERT INTO {SCHEMA}.done VALUES (%s)", [name])  # noqa: S608 - as above

    def end(self, found: BackupManifest) -> None:
        """Finish the restore: record the applied migrations, which are this code's."""
        _analyze()
        for alias in settings.DATABASES:
            if alias != "default":
                manifest.record_migrations(alias)
        with transaction.atomic():
            manifest.record_migrations("default")
            trail.add(None, OperationTag.CLI_BACKUP_RESTORE, data=found.facts())
            with connection.cursor() as cursor:
                cursor.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def _control(
    archive: BackupArchive,
    found: BackupManifest,
    alias: str,
    identities: Sequence[Identity],
    folder: Path,
) -> None:
    plain = folder / "scratch-control"
    try:
        restore_checks.fetch(archive, found, f"{alias}.dump.age", identities, plain)
        with control.connect(alias) as server:
            major = control.major_of(server)
        control.restore_control_database(alias, plain, major=major)
    finally:
        plain.unlink(missing_ok=True)


def _environments(
    archive: BackupArchive,
    checked: RestorePlan,
    identities: Sequence[Identity],
    folder: Path,
    progress: RestoreProgress,
    result: PlatformRestoreResult,
    say: Say,
) -> None:
    said_at = time.monotonic()
    for count, planned in enumerate(checked.environments, start=1):
        with progress.step(f"environment:{planned.number}") as is_due:
            if is_due:
                one = partial(_environment, archive, checked.manifest, planned, identities)
                retry_while_unavailable(partial(one, folder, result))
        if time.monotonic() - said_at >= REPORT_EVERY_S:
            said_at = time.monotonic()
            say(f"{count} of {len(checked.environments)} environments.")


def _environment(
    archive: BackupArchive,
    found: BackupManifest,
    planned: EnvironmentPlan,
    identities: Sequence[Identity],
    folder: Path,
    result: PlatformRestoreResult,
) -> None:
    is_dumped = planned.file in found.files
    if not is_dumped and planned.state not in WITHOUT_DATA:
        # Deleted while the backup was made: its first query creates an empty one.
        return
    row = _row(planned)
    row.state = Database.State.FAILED
    row.copy_error = "It had no data when the backup was made."
    about = {"org_id": planned.organization_id, "environment": planned.slug}
    if not is_dumped:
        result.without_data.append(about)
    else:
        plain = folder / "scratch-environment"
        try:
            restore_checks.fetch(archive, found, planned.file, identities, plain)
            tenant_databases.create(row)
            restores.fill_new(row, plain)
            result.environments += 1
            row.state = _state(planned)
        except CommandRefused as exc:
            result.failed.append(about | {"reason": exc.message})
            row.copy_error = reason_for_tenant(exc)
        finally:
            plain.unlink(missing_ok=True)
    row.claimed_at = timezone.now()
    row.save()
    if row.state == Database.State.SUSPENDED:
        tenant_databases.set_login(row, allowed=False)


def _row(planned: EnvironmentPlan) -> Database:
    """Return the row of the restored database: its roles are named in the dump."""
    cluster = servers.default()
    servers.address_of(cluster)

    row = Database.objects.filter(environment_id=planned.environment_pk).first()
    if row is None:
        row = Database(
            cluster=cluster,
            organization_id=planned.organization_id,
            environment_id=planned.environment_pk,
            dbname=names.database_name(),
            admin_role=planned.admin_role,
            operator_role=planned.operator_role,
            reader_role=planned.reader_role,
        )
    row.passwords = {role: names.password() for role in ("admin", "operator", "reader")}
    row.state = Database.State.PREPARING
    # Saved before the database exists, so that after a crash it is found and created again.
    row.save()
    return row


def _state(planned: EnvironmentPlan) -> Database.State:
    is_deleted = planned.state == "suspended"
    return Database.State.SUSPENDED if is_deleted else Database.State.ACTIVE


def _analyze() -> None:
    for alias in settings.DATABASES:
        with control.connect(alias) as server:
            server.execute("ANALYZE")


def delete_restored_credentials() -> int:
    """Delete credentials and queued messages, and hold payouts; return the number of payouts.

    Raises CommandRefused while processes run.
    """
    for alias in settings.DATABASES:
        with control.connect(alias) as server:
            restore_checks.refuse_running(server)
    for alias in settings.DATABASES:
        database = connections[alias]
        present = set(database.introspection.table_names())
        table_names = [
            name for name in control.names_of(control.CREDENTIALS_AND_QUEUES) if name in present
        ]
        with transaction.atomic(using=alias), database.cursor() as cursor:
            cursor.execute(f"TRUNCATE {', '.join(table_names)}")
    with transaction.atomic():
        trail.add(None, OperationTag.CLI_BACKUP_RESTORE, data={"kind": "recovery"})
        return hold_payouts()


def hold_payouts() -> int:
    """Hold all payouts until they are reconciled; return how many are being sent."""
    if not settings.HAS_CACHE:
        return 0
    from billing.payouts import reconciliation  # noqa: PLC0415 - only with the feature

    return reconciliation.begin()
