"""The data folder of a cluster, created once, and its configuration, written at every start."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from common.machine.errors import ClusterError
from common.machine.files import write_private
from common.machine.owners import SystemUser, give
from common.machine.postgres_programs import Binaries
from operations.embedded.supervisor.launch import PRIVATE_UMASK, Launch, run

# Passwords for everyone, over the socket only. The last lines reject everything else explicitly, so
# that a line appended by mistake has no effect.
PG_HBA: Final = """\
local  all          all       scram-sha-256
local  replication  all       reject
host   all          all  all  reject
host   replication  all  all  reject
"""
COMMON: Final = {
    "password_encryption": "scram-sha-256",
    "authentication_timeout": "10s",
    "shared_preload_libraries": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # No replicas and no two-phase commits, so that no prepared transaction can remain.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_replication_slots": "0",
    "max_prepared_transactions": "0",
    "max_logical_replication_workers": "0",
    # Memory: several clusters share a small machine, and each is mostly idle.
    "shared_buffers": "32MB",
    "huge_pages": "off",
    "work_mem": "4MB",
    "maintenance_work_mem": "32MB",
    "max_wal_size": "256MB",
    "max_worker_processes": "4",
    "max_parallel_workers": "2",
    "max_parallel_workers_per_gather": "1",
    "autovacuum_max_workers": "2",
    # Tenants may use half of the locks (lock_guard.py); twice the default leaves them the default
    # number.
    "max_locks_per_transaction": "128",
    # JIT compilation costs more than it saves for results of this size, and uses memory.
    "jit": "off",
    # Errors are reported to the client. The log has no statements and no DETAIL values, which are
    # tenants' data or, in the control plane, secrets.
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_line_prefix": "",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
}
# No I/O worker processes: reads of this size do not benefit from them.
SINCE_18: Final = {"io_method": "sync"}
# A temporary cluster may be lost, and tests create many databases.
NOT_DURABLE: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
INITDB_TIMEOUT_S: Final = 180
BUILTIN_LOCALES_SINCE: Final = 17


def initialize(
    data: Path,
    binaries: Binaries,
    *,
    owner: SystemUser | None,
    superuser: str,
    password: str,
    durable: bool,
) -> None:
    """Create a data folder whose server requires a password from every role.

    The folder gets its name only when it is complete: a killed initdb leaves a folder that the
    next start removes. Raises ClusterError with the output of initdb.
    """
    scratch = data.parent / "initdb"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    give(scratch, owner, mode=0o700)
    password_file = scratch / "password"
    write_private(password_file, password)
    give(password_file, owner, mode=0o600)
    command = (
        binaries.path("initdb"),
        "--pgdata",
        str(scratch / "data"),
        "--username",
        superuser,
        "--auth",
        "scram-sha-256",
        "--pwfile",
        str(password_file),
        "--encoding",
        "UTF8",
        "--data-checksums",
        "--no-instructions",
        *(() if durable else ("--no-sync",)),
    )
    said = ""
    for locale in _locales(binaries.major):
        refusal = _initdb((*command, *locale), binaries, owner=owner, cwd=scratch)
        if refusal is None:
            (scratch / "data").rename(data)
            shutil.rmtree(scratch)
            return
        said = refusal
    sentence = f"PostgreSQL could not create {data}:\n{said}"
    raise ClusterError(sentence)


def postgresql_conf(settings: dict[str, str]) -> str:
    """Return `name = 'value'` lines; quotes inside a value are doubled."""
    lines = (f"{name} = '{_escaped(value)}'" for name, value in settings.items())
    return "# Written at every start; changes are lost.\n" + "\n".join(lines) + "\n"


def settings_for(
    major: int, *, max_connections: int, naptime_s: int, durable: bool
) -> dict[str, str]:
    """Return the settings of a cluster of a major version."""
    return {
        **COMMON,
        **(SINCE_18 if major >= 18 else {}),
        **({} if durable else NOT_DURABLE),
        "max_connections": str(max_connections),
        "autovacuum_naptime": f"{naptime_s}s",
    }


def decisive_arguments(
    name: str, *, configuration: Path, rules: Path, socket_dir: Path, port: int
) -> tuple[str, ...]:
    """Return command-line settings, which override every file and ALTER SYSTEM."""
    quoted = '"' + os.fspath(socket_dir).replace('"', '""') + '"'
    settings = {
        "config_file": str(configuration),
        "hba_file": str(rules),
        "listen_addresses": "",
        "port": str(port),
        "unix_socket_directories": quoted,
        "unix_socket_permissions": "0700",
        "cluster_name": f"zonal-{name}",
    }
    return tuple(part for key, value in settings.items() for part in ("-c", f"{key}={value}"))


def _initdb(
    command: tuple[str, ...], binaries: Binaries, *, owner: SystemUser | None, cwd: Path
) -> str | None:
    """Run initdb; return None if it succeeded, else its output."""
    launch = Launch(
        command=command,
        owner=owner,
        env={"PATH": str(binaries.bindir), "LC_ALL": "C", "TZ": "UTC"},
        cwd=cwd,
        umask=PRIVATE_UMASK,
    )
    try:
        result = run(launch, timeout_s=INITDB_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"initdb took more than {INITDB_TIMEOUT_S} s"
    return None if result.returncode == 0 else result.stdout.strip()


def _locales(major: int) -> tuple[tuple[str, ...], ...]:
    """Return locale arguments in order of preference.

    Code point order with Unicode case rules, the same on every machine: from PostgreSQL itself
    where it has them, else from the C library, else plain C (macOS has no C.UTF-8).
    """
    if major >= BUILTIN_LOCALES_SINCE:
        return (("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),)
    return (("--locale=C.UTF-8",), ("--locale=C",))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
