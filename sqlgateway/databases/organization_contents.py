"""Export an organization's databases with pg_dump."""

import time

import psycopg

from common.archives import ArchiveRefused, ZipWriter
from environments.models import Environment
from sqlgateway.clusters.servers import address_of, administer
from sqlgateway.databases.copies import CopyFailed, programs, trials
from sqlgateway.databases.copies.reading import exported_snapshot, reading_role
from sqlgateway.databases.copies.trials import Trial
from sqlgateway.models import Database, SavedQuery


def write(organization_id: int, archive: ZipWriter) -> None:
    """Add saved queries, and each environment's database in pg_restore's custom format.

    Raises ArchiveRefused, EngineUnavailable.
    """
    saved = SavedQuery.objects.filter(organization_id=organization_id)
    columns = ("name", "text", "created_at", "updated_at", "updated_by")
    archive.records("saved_queries.ndjson", saved.order_by("pk").values(*columns))
    live = Environment.objects.filter(organization_id=organization_id, deleted_at=None)
    for environment in live.order_by("pk"):
        rows = Database.objects.filter(organization_id=organization_id).select_related("cluster")
        database = rows.filter(environment=environment).first()
        if database is None:
            continue
        if database.state != Database.State.ACTIVE:
            archive.note(f"The database of {environment.slug}: it is {database.state}.")
            continue
        try:
            trial = _dump(database, f"databases/{environment.slug}.dump", archive)
        except (CopyFailed, psycopg.Error) as exc:
            # The message may contain names of the server.
            raise ArchiveRefused(f"The database of {environment.slug} cannot be read.") from exc
        if trial.text:
            archive.note(f"The database of {environment.slug}: {trial.text}")


def _dump(database: Database, name: str, archive: ZipWriter) -> Trial:
    address = address_of(database.cluster)
    with (
        reading_role(address, database) as reader,
        administer(address, database.dbname) as inside,
        exported_snapshot(inside) as snapshot,
    ):
        # pg_dump compresses.
        with archive.entry(name, is_compressed=False) as write_bytes:
            programs.dump_into(
                write_bytes,
                reader,
                snapshot=snapshot,
                major=database.cluster.server_version // 10_000,
                timeout_s=max(0.0, archive.deadline - time.monotonic()),
            )
        return trials.judge(database, inside, reader, snapshot=snapshot)
