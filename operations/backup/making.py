"""Making a backup, and continuing one that was interrupted."""

import json
import secrets
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings

from common.commands import CommandRefused, Unreachable
from common.key_fingerprints import fingerprint
from common.machine.reasons import reason
from operations.backup import catalogue, control, manifest, object_upload, sealing
from operations.backup.archive import BackupArchive
from operations.backup.manifest import BackupManifest
from operations.backup.sealing import Digest
from operations.backup.work import EnvironmentPlan, Plan, Say, Work, retry_while_unavailable
from sqlgateway.databases.copies import restores
from sqlgateway.databases.copies.trials import Trial
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Database

PLATFORM: Final = "platform"
ENVIRONMENT: Final = "environment"
# The environments at the snapshot. Databases in stock and unfinished clones are skipped: they have
# no data.
DATABASES: Final = """
SELECT d.id, d.organization_id, d.environment_id, e.slug, d.state, d.admin_role, d.operator_role,
    d.reader_role, c.server_version / 10000
FROM sqlgateway_database d
JOIN environments_environment e ON e.id = d.environment_id
JOIN sqlgateway_cluster c ON c.id = d.cluster_id
WHERE d.state NOT IN ('preparing', 'stock', 'dropped') AND (%(only)s::bigint IS NULL
    OR d.environment_id = %(only)s)
ORDER BY d.id
"""
HAVE_DATA: Final = ("active", "moving", "suspended")
WITHOUT_DATA: Final = ("copying", "failed")
SAY_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A finished backup. failed: environments without a dump, with the reason.

    without_data: unfinished and failed copies, which have nothing to dump.
    not_restorable: environments whose dump cannot be restored, with the reason. left_out: those of
    whose dump a restore leaves objects out. Neither has those that an interrupted call has dumped.
    """

    manifest: BackupManifest
    failed: list[dict[str, Any]]
    not_restorable: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    without_data: list[dict[str, Any]]
    missing_objects: int
    uploaded_objects: int


def make(archive: BackupArchive, work: Work, say: Say, *, only: int | None = None) -> BackupResult:
    """Make a backup of the platform, or of one environment's database; continue an interrupted one.

    only: the environment's key. Raises CommandRefused.
    """
    kind = kind_of(only)
    plan = work.plan()
    if plan is not None and _fits(plan, archive, kind) and only is None:
        say(f"Continuing {plan.id}.")
    else:
        plan = _begin(archive, work, kind, only, say)
    failed, not_restorable, left_out = _environments(archive, work, plan, say)
    moved = object_upload.TransferResult()
    if kind == PLATFORM:
        moved = object_upload.upload(archive, work, catalogue.known_objects(archive), say)
        object_upload.finish_lists(archive, work, f"backups/{plan.id}", moved)
    files = {**plan.files, **work.done()}
    made = BackupManifest(
        id=plan.id,
        kind=plan.kind,
        started_at=plan.started_at,
        finished_at=_now(),
        migrations=plan.migrations,
        major=plan.major,
        key=plan.key,
        mfa_key=fingerprint(settings.ACCOUNTS.mfa_keys[0]),
        files=files,
        environments=sum(row.file in files for row in plan.environments),
        failed=len(failed),
        objects=plan.objects - len(moved.missing),
        object_bytes=plan.object_bytes,
    )
    archive.put(f"backups/{plan.id}/manifest.json", manifest.write(made))
    work.end()
    empty = [
        {"org_id": row.organization_id, "environment": row.slug}
        for row in plan.environments
        if row.state in WITHOUT_DATA
    ]
    missing, uploaded = len(moved.missing), moved.uploaded
    return BackupResult(made, failed, not_restorable, left_out, empty, missing, uploaded)


def kind_of(only: int | None) -> str:
    """Return the kind of a backup. only: the environment's key, if it has only that one."""
    return PLATFORM if only is None else ENVIRONMENT


def _fits(plan: Plan, archive: BackupArchive, kind: str) -> bool:
    """True if a plan can be continued, because nothing it depends on has changed."""
    return (
        plan.kind == kind == PLATFORM
        and plan.store == archive.name
        and plan.key == fingerprint(settings.SECRET_KEYS[0])
        and list(plan.recipients) == list(settings.BACKUP.recipients)
        and list(plan.migrations) == manifest.code_migrations()
    )


def _begin(archive: BackupArchive, work: Work, kind: str, only: int | None, say: Say) -> Plan:
    migrations = manifest.applied_migrations()
    started = datetime.now(UTC)
    backup_id = _new_id(started)
    files: dict[str, Digest] = {}
    objects = object_bytes = 0

    def put(name: str, source: Path) -> None:
        files[name] = _put_sealed(archive, work, f"backups/{backup_id}/{name}", source)
        source.unlink()

    with control.snapshots() as found:
        major = control.major_of(found["default"].connection)
        environments = _plan_environments(found["default"].connection, only)
        if kind == PLATFORM:
            brain = found[object_upload.brain_alias()]
            objects, object_bytes = object_upload.write_list(brain.connection, work)
            for alias, snapshot in found.items():
                say(f"Dumping the control database ({alias}).")
                put(f"{alias}.dump.age", _dumped(snapshot, work))
    contents = work.scratch("contents")
    contents.write_text(json.dumps([asdict(row) for row in environments]))
    put("contents.age", contents)
    plan = Plan(
        id=backup_id,
        kind=kind,
        store=archive.name,
        started_at=started.isoformat(),
        migrations=migrations,
        major=major,
        key=fingerprint(settings.SECRET_KEYS[0]),
        recipients=settings.BACKUP.recipients,
        environments=environments,
        objects=objects,
        object_bytes=object_bytes,
        files=files,
    )
    work.begin(plan)
    return plan


def _new_id(started: datetime) -> str:
    # Ids sort by time. The random part keeps two platforms that share a store apart.
    moment = f"{started:%Y%m%dT%H%M%S}.{started.microsecond // 1000:03}Z"
    return f"{moment}-{secrets.token_hex(4)}"


def _dumped(snapshot: control.Snapshot, work: Work) -> Path:
    plain = work.scratch("control")
    plain.unlink(missing_ok=True)
    plain.touch(mode=0o600)
    control.dump(snapshot, plain)
    return plain


def _plan_environments(connection: psycopg.Connection, only: int | None) -> list[EnvironmentPlan]:
    rows = connection.execute(DATABASES, {"only": only}).fetchall()
    return [EnvironmentPlan(number, *row) for number, row in enumerate(rows, start=1)]


def _environments(
    archive: BackupArchive, work: Work, plan: Plan, say: Say
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Dump the remaining environments; return those that failed, and that cannot be restored whole.

    The second list has those that cannot be restored, the third those that lose objects.
    """
    done = work.done()
    said_at = time.monotonic()
    failed: list[dict[str, Any]] = []
    not_restorable: list[dict[str, Any]] = []
    left_out: list[dict[str, Any]] = []
    for count, environment in enumerate(plan.environments, start=1):
        if environment.state in HAVE_DATA and environment.file not in done:
            about = {"org_id": environment.organization_id, "environment": environment.slug}
            try:
                trial = _dump(archive, work, plan, environment)
                if trial and trial.complaint:
                    not_restorable.append({**about, "reason": trial.complaint})
                if trial and trial.left_out:
                    left_out.append({**about, "objects": [*trial.left_out]})
            except Unreachable:
                raise
            except (CommandRefused, EngineUnavailable) as exc:
                failed.append({**about, "reason": _reason(exc)})
        if time.monotonic() - said_at >= SAY_EVERY_S:
            said_at = time.monotonic()
            say(f"{count} of {len(plan.environments)} environments.")
    return failed, not_restorable, left_out


def _reason(exc: CommandRefused | EngineUnavailable) -> str:
    said = exc.message if isinstance(exc, CommandRefused) else exc.for_operators or exc.title
    return said or reason(exc)


def _dump(
    archive: BackupArchive, work: Work, plan: Plan, environment: EnvironmentPlan
) -> Trial | None:
    """Write one environment's dump; return whether it can be restored, None without a dump.

    An environment that was deleted in the meantime is not a failure: it has no dump.
    Raises CommandRefused, EngineUnavailable.
    """
    database = (
        Database.objects.select_related("cluster")
        .filter(pk=environment.database_pk, environment_id=environment.environment_pk)
        .first()
    )
    if database is None:
        return None
    plain = work.scratch("environment")
    plain.unlink(missing_ok=True)
    try:
        made = retry_while_unavailable(partial(restores.dump, database, plain))
        name = f"backups/{plan.id}/{environment.file}"
        work.add(environment.file, _put_sealed(archive, work, name, plain))
    finally:
        plain.unlink(missing_ok=True)
    return made.trial


def _put_sealed(archive: BackupArchive, work: Work, name: str, source: Path) -> Digest:
    sealed = work.scratch("sealed")
    try:
        digest = sealing.seal_file(source, sealed)
        archive.put(name, sealed)
    finally:
        sealed.unlink(missing_ok=True)
    return digest


def _now() -> str:
    return datetime.now(UTC).isoformat()
