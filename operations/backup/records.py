"""Backups and drills in the audit trail, for ``doctor`` and Prometheus."""

from collections.abc import Iterator
from typing import Final

from django.db.models import QuerySet
from prometheus_client.core import GaugeMetricFamily

from audit.models import AuditEvent
from common.metrics.figures import GaugeGroup, gauge
from operations.audit_tags import OperationTag


def last_backup() -> AuditEvent | None:
    """Return the event of the last backup of the platform; its data are the manifest's facts."""
    return _of(OperationTag.CLI_BACKUP_CREATE).filter(data__kind="platform").first()


def last_drill() -> AuditEvent | None:
    """Return the event of the last drill: a restore elsewhere that was compared."""
    return _of(OperationTag.CLI_BACKUP_DRILL).first()


def _of(tag: OperationTag) -> QuerySet[AuditEvent]:
    # Uses the index audit_of_backups.
    return AuditEvent.objects.filter(tag=str(tag)).order_by("-at")


def _read() -> Iterator[GaugeMetricFamily]:
    backup, drill = last_backup(), last_drill()
    yield gauge(
        "zonal_backup_timestamp_seconds",
        "When the last backup of everything ended, in Unix time; 0 if there has been none.",
        backup.at.timestamp() if backup else 0,
    )
    yield gauge(
        "zonal_backup_missing_environments",
        "Environments that are not in the last backup.",
        backup.data["failed"] if backup else 0,
    )
    yield gauge(
        "zonal_backup_drill_timestamp_seconds",
        "When the last successful drill was recorded, in Unix time; 0 if there has been none.",
        drill.at.timestamp() if drill else 0,
    )


BACKUPS: Final = GaugeGroup("backups", _read, keep_s=60)
