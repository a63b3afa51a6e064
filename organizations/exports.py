"""Exports of an organization's data: an archive, written in the background, kept for some days.

At most one at a time for each organization, and two in total. The file is in the folder
ZEXPORT_DIR, which web servers and task workers share.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.utils import timezone

from accounts.organization_admins import notify_admins
from common import archives
from common.archives import ArchiveRefused
from common.errors import PlatformError
from common.jobs import LONG_JOBS
from common.scoping import unscoped
from environments import tenant_data
from environments.models import Organization
from organizations.errors import (
    ExportGone,
    ExportNotFound,
    ExportsFull,
    ExportUnderWay,
    TooManyExports,
)
from organizations.models import OrganizationExport

State = OrganizationExport.State
OPEN: Final = (State.QUEUED, State.RUNNING)
# Maximum concurrent exports: they read whole databases for minutes, and mails must not wait.
MAX_CONCURRENT_EXPORTS: Final = LONG_JOBS
# Longest time that writing an export takes.
TIMEOUT_S: Final = 1_800
KEEP_FILE: Final = timedelta(days=3)
FULL_RETRY_S: Final = 3600
# Maximum stored exports of an organization, so that none uses all the disk space.
MAX_READY_EXPORTS: Final = 2
# Rows of deleted exports stay listed this long.
KEEP_ROWS: Final = timedelta(days=30)
# The export of a killed process keeps the state "running" for at most this long.
GRACE: Final = timedelta(minutes=10)
STOPPED: Final = "It stopped before it was complete: request it again."

log = structlog.get_logger(__name__)


def request(organization_id: int, *, by: str, now: datetime) -> OrganizationExport:
    """Request an export of an organization's data; every admin gets a mail.

    Call inside a transaction. Raises ExportUnderWay, TooManyExports (409), ExportsFull (503).
    """
    stop_lost(now=now)
    mine = OrganizationExport.objects.filter(organization_id=organization_id)
    if mine.filter(state=State.READY, expires_at__gt=now).count() >= MAX_READY_EXPORTS:
        raise TooManyExports(f"It may have {MAX_READY_EXPORTS} at a time. Delete one first.")
    if not _room_bytes():
        raise ExportsFull(retry_after_s=FULL_RETRY_S)
    try:
        with transaction.atomic():
            row: OrganizationExport = OrganizationExport.objects.create(
                organization_id=organization_id, requested_by=by, requested_at=now
            )
    except IntegrityError:
        raise ExportUnderWay from None
    name = Organization.objects.values_list("name", flat=True).get(pk=organization_id)
    notify_admins(organization_id, "organization_exported", organization=name, by=by)
    return row


def run(export_id: UUID) -> None:
    """Write a queued export; a failure is stored in its row and not tried again."""
    row = _begin(export_id)
    if row is None:
        return
    try:
        size_bytes, notes = write(row.organization_id, path_of(row), limit_bytes=_room_bytes())
    except (ArchiveRefused, PlatformError) as exc:
        _finish(row, State.FAILED, failure=getattr(exc, "title", "") or str(exc))
    except BaseException:
        _finish(row, State.FAILED, failure=STOPPED)
        raise
    else:
        _finish(row, State.READY, size_bytes=size_bytes, notes=notes)


def write(organization_id: int, path: Path, *, limit_bytes: int) -> tuple[int, list[str]]:
    """Write an organization's data to a new file; return its size and what is missing.

    Raises ArchiveRefused, PlatformError.
    """
    with archives.new_archive(path, limit_bytes=limit_bytes, timeout_s=TIMEOUT_S) as archive:
        for data in tenant_data.ALL:
            data.export(organization_id, archive)
        archive.close({"organization_id": organization_id, "at": timezone.now()})
    return path.stat().st_size, archive.notes


def file_of(row: OrganizationExport, *, now: datetime) -> Path:
    """Return the file of an export. Raises ExportGone if it is not complete or was deleted."""
    path = path_of(row)
    if row.state != State.READY or row.expires_at is None or row.expires_at <= now:
        raise ExportGone
    if not path.is_file():
        raise ExportGone
    return path


def find(organization_id: int, export_id: str) -> OrganizationExport:
    """Return an export of the organization. Raises ExportNotFound."""
    try:
        key = UUID(export_id)
    except ValueError:
        raise ExportNotFound from None
    rows = OrganizationExport.objects.filter(organization_id=organization_id)
    found: OrganizationExport | None = rows.filter(pk=key).first()
    if found is None:
        raise ExportNotFound
    return found


def remove(row: OrganizationExport) -> None:
    """Delete an export and its file. Raises ExportUnderWay for one that is being written."""
    if row.state in OPEN:
        raise ExportUnderWay
    _delete_files(row)
    row.delete()


def remove_all(organization_id: int) -> None:
    """Delete all exports of a deleted organization, also one that is being written."""
    for row in OrganizationExport.objects.filter(organization_id=organization_id):
        _delete_files(row)
        row.delete()


def path_of(row: OrganizationExport) -> Path:
    """Return the path of an export's file."""
    return Path(settings.ORGANIZATIONS.export_dir) / f"{row.pk}.zip"


def maintain(*, now: datetime) -> None:
    """Delete expired exports: files first, so that no file stays without its row."""
    rows = OrganizationExport.objects.filter(expires_at__lte=now)
    for row in rows:
        path_of(row).unlink(missing_ok=True)

    OrganizationExport.objects.filter(requested_at__lte=now - KEEP_ROWS).delete()
    stop_lost(now=now)
    folder = Path(settings.ORGANIZATIONS.export_dir)
    cutoff = (now - KEEP_ROWS).timestamp()
    for left in folder.glob("*.zip*") if folder.is_dir() else ():
        if left.stat().st_mtime < cutoff:
            left.unlink(missing_ok=True)


@unscoped("the disk is shared by every organization")
def stop_lost(*, now: datetime) -> None:
    """Mark exports of killed processes as failed, so that another one can be requested.

    Their files are deleted: they count in no sum of sizes and would stay for weeks.
    """
    limit = timedelta(seconds=TIMEOUT_S) + GRACE
    lost = OrganizationExport.objects.filter(state=State.RUNNING, started_at__lte=now - limit)
    for row in lost:
        _delete_files(row)
    lost.update(state=State.FAILED, failure=STOPPED, finished_at=now)


def _delete_files(row: OrganizationExport) -> None:
    """Delete an export's file, complete or not: a process that still writes it fails at the end."""
    path = path_of(row)
    archives.unfinished_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


@unscoped("the disk is shared by every organization")
def _room_bytes() -> int:
    """Return the maximum size of one more export: half of the free space, since two may run."""
    ready = OrganizationExport.objects.filter(state=State.READY, expires_at__gt=timezone.now())
    taken = ready.aggregate(taken=Sum("size_bytes"))["taken"] or 0
    return max(0, settings.ORGANIZATIONS.export_disk_bytes - int(taken)) // MAX_CONCURRENT_EXPORTS


def _begin(export_id: UUID) -> OrganizationExport | None:
    with transaction.atomic():
        rows = OrganizationExport.objects.select_for_update()
        row = rows.filter(pk=export_id, state=State.QUEUED).first()
        if row is not None:
            row.state, row.started_at = State.RUNNING, timezone.now()
            row.save(update_fields=["state", "started_at"])
        return row


def _finish(
    row: OrganizationExport,
    state: OrganizationExport.State,
    *,
    failure: str = "",
    size_bytes: int = 0,
    notes: list[str] | None = None,
) -> None:
    now = timezone.now()
    row.state, row.failure, row.size_bytes, row.finished_at = state, failure, size_bytes, now
    row.missing = notes or []
    if state == State.READY:
        row.expires_at = now + KEEP_FILE
    # The organization and its exports may have been deleted: an UPDATE does not recreate the row.

    rows = OrganizationExport.objects.filter(pk=row.pk, state=State.RUNNING)
    names = ("state", "failure", "size_bytes", "finished_at", "missing", "expires_at")
    if not rows.update(**{name: getattr(row, name) for name in names}):
        path_of(row).unlink(missing_ok=True)
        return
    log.info("organization_export", organization=row.organization_id, state=str(state))
