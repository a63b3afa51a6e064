"""The control databases: their snapshots, dumps and restore, and which tables are in no backup."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from django.apps import apps
from django.conf import settings
from django.db import connections
from psycopg.conninfo import make_conninfo

from common.commands import CommandRefused
from edgecache.brain.router import LABEL as BRAIN
from sqlgateway.databases.copies import CopyFailed, programs

# Credentials and queued messages: a restore would make them valid again although they were used,
# ended or revoked since. These rows are in no backup.
CREDENTIALS_AND_QUEUES: Final = frozenset(
    {
        "sessions.Session",
        "accounts.Session",
        "accounts.ApiKey",
        "outbox.Delivery",
        "organizations.Invitation",
        "accounts.SignupLink",
        "accounts.MailboxProof",
        "oauth.OAuthTransaction",
        "oauth.OAuthGrant",
        "common.Throttle",
        "accounts.TerminalSignIn",
        "outbox.WebhookDelivery",
        "recovery.Recovery",
        "recovery.RecoveryChallenge",
        "twofactor.Challenge",
        "twofactor.Enrolment",
        "twofactor.PasskeyRequest",
        "twofactor.PendingSignIn",
        "twofactor.TrustedDevice",
        "sqlgateway.InteractiveTransaction",
        "sqlgateway.RunningSql",
        "brain.AccessKey",
        # The task queue: periodic tasks find due work again.
        "procrastinate.ProcrastinateJob",
        "procrastinate.ProcrastinateEvent",
        "procrastinate.ProcrastinateWorker",
        "procrastinate.ProcrastinatePeriodicDefer",
    }
)
# State of the processes and servers at that time.
RUNTIME_STATE: Final = frozenset(
    {
        # A restored platform must not reach the servers of the original one.
        "sqlgateway.Cluster",
        "sqlgateway.Database",
        "sqlgateway.RetiredDatabase",
        # Cached data, and the addresses of the original stores.
        "brain.BrainInstance",
        "brain.CachedObject",
        "brain.Location",
        "brain.NodeJob",
        "brain.FillLease",
        "brain.PendingWrite",
        "brain.PurgeRecord",
        "brain.Release",
        "brain.Store",
        "brain.StoredBlob",
        "brain.DiscardedBytes",
        "brain.Upload",
        "brain.UploadPart",
        # The files are on the original machine.
        "organizations.OrganizationExport",
    }
)
OMITTED: Final = CREDENTIALS_AND_QUEUES | RUNTIME_STATE
# Restored in the last step, so that no process starts on an unfinished restore.
RESTORED_LAST: Final = "django_migrations"
DUMP_OPTIONS: Final = (
    "--format=custom",
    "--compress=1",
    "--no-password",
    "--lock-wait-timeout=20s",
)
RESTORE_OPTIONS: Final = (
    "--no-password",
    "--no-owner",
    "--no-privileges",
    "--exit-on-error",
    # One transaction, so that a restore is complete or changes nothing.
    "--single-transaction",
    "--clean",
    "--if-exists",
)
# Tells our connections from those of running processes.
APPLICATION_NAME: Final = "zonal-backup"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of a control database, held open by a connection."""

    alias: str
    id: str
    connection: psycopg.Connection


@contextmanager
def snapshots() -> Iterator[dict[str, Snapshot]]:
    """Yield a snapshot of each control database, by its alias, while the block runs."""
    with ExitStack() as stack:
        found = {}
        for alias in settings.DATABASES:
            connection = stack.enter_context(connect(alias))
            stack.enter_context(connection.transaction())
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            row = connection.execute("SELECT pg_export_snapshot()").fetchone()
            found[alias] = Snapshot(alias, str(row[0]) if row else "", connection)
        yield found


def dump(snapshot: Snapshot, file: Path) -> None:
    """Write a control database to a file, without the rows of ``OMITTED``.

    Raises CommandRefused.
    """
    present = set(connections[snapshot.alias].introspection.table_names())
    left_out = [f"--exclude-table-data={name}" for name in omitted_tables() if name in present]
    options = (*DUMP_OPTIONS, *left_out, f"--snapshot={snapshot.id}", f"--file={file}")
    _run("pg_dump", options, snapshot.alias, major_of(snapshot.connection))


def restore_control_database(alias: str, file: Path, *, major: int) -> None:
    """Replace all tables by those of a dump, in one transaction.

    major: of the server. If it raises CommandRefused, nothing was changed.
    """
    _run("pg_restore", (*RESTORE_OPTIONS, str(file)), alias, major)


def connect(alias: str) -> psycopg.Connection:
    """Open a separate connection, in autocommit. Raises Django's OperationalError."""
    parameters = connections[alias].get_connection_params()
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)
    parameters["application_name"] = APPLICATION_NAME
    with connections[alias].wrap_database_errors:
        return psycopg.connect(**parameters, autocommit=True)


def major_of(connection: psycopg.Connection) -> int:
    """Return the server's major version."""
    return connection.info.server_version // 10_000


def omitted_tables() -> list[str]:
    """Return the names of the tables whose rows are in no backup."""
    return sorted({*names_of(OMITTED), RESTORED_LAST})


def names_of(labels: Set[str]) -> list[str]:
    """Return the tables of models, by their labels.

    Raises CommandRefused for a label without a model, because its rows would be in the backup.
    """
    return sorted(map(_table_of, labels))


def _table_of(label: str) -> str:
    if label.startswith(f"{BRAIN}.") and not settings.HAS_CACHE:
        # Its models are not loaded, but an installation that had the cache before has its tables.
        return label.replace(".", "_").lower()
    try:
        table: str = apps.get_model(label)._meta.db_table
    except LookupError as exc:
        sentence = f"{label} is no model: the rows of its table would be in the backup."
        raise CommandRefused("model_unknown", sentence, label=label) from exc
    return table


def _run(program: str, options: Sequence[str], alias: str, major: int) -> None:
    parameters: dict[str, Any] = connections[alias].get_connection_params()
    password = str(parameters.get("password") or "")
    named = {
        key: parameters[key] for key in ("host", "port", "user", "dbname") if key in parameters
    }
    tls = {key: value for key, value in parameters.items() if key.startswith("ssl")}
    try:
        path = str(programs.folder(major) / program)
    except CopyFailed as exc:
        raise CommandRefused("program_missing", str(exc)) from exc
    where = f"--dbname={make_conninfo('', **named, **tls)}"
    environment = {"LC_ALL": "C", "PGPASSWORD": password, "PGAPPNAME": APPLICATION_NAME}
    with tempfile.TemporaryFile() as words:
        ended = subprocess.run(  # noqa: S603 - our own programs, the platform's own database
            [path, where, *options],
            env=environment,
            cwd="/",
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
        )
        if ended.returncode:
            raise CommandRefused("copy_failed", f"{program} failed: {programs.first_error(words)}")
