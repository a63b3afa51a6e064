"""Run ``pg_dump`` and ``pg_restore``, in custom format.

psql is never used: a dump in plain text can contain its meta-commands, which run programs on this
machine (CVE-2025-8714). pg_restore only sends SQL, which runs as the tenant's own role.
"""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Final

from django.conf import settings
from psycopg.conninfo import make_conninfo

from platform_site.embedded.errors import BinariesError
from platform_site.embedded.folders import make_runtime_dir
from platform_site.embedded.postgres.binaries import (
    MINOR_FLOOR,
    read_version,
    system_folders,
)
from platform_site.embedded.postgres.private_copy import private_copy
from sqlgateway.provisioning.clusters import Address
from sqlgateway.provisioning.database_copy import CopyFailed, ProgramsMissing

DUMP: Final = (
    *("--format=custom", "--no-password", "--no-subscriptions"),
    *("--no-security-labels", "--lock-wait-timeout=20s"),
)
RESTORE: Final = ("--no-password", "--no-owner", "--exit-on-error")
WITHOUT_OWNERS: Final = ("--no-owner", "--no-privileges")
# The platform's own schema does not contain data of the tenant.
OWN_ONLY: Final = ("--exclude-schema=zonal",)
PIECE_BYTES: Final = 2**16
ERROR_CHARS: Final = 300
CHECK_S: Final = 5.0
# From this version on pg_restore sets transaction_timeout, which older servers do not have.
TIMEOUT_SINCE: Final = 17


@dataclass(frozen=True, slots=True)
class ProgramLogin:
    """How a program logs in."""

    address: Address
    dbname: str
    user: str
    password: str = field(repr=False)

    def conninfo(self) -> str:
        """Return a connection string without the password: other users can see arguments."""
        network: dict[str, Any] = dict(self.address.network)
        return make_conninfo("", **network, user=self.user, dbname=self.dbname)


def transfer(
    source: ProgramLogin,
    target: ProgramLogin,
    *,
    snapshot: str,
    major: int,
    check: Callable[[], None],
) -> None:
    """Copy schema and data, without owners and privileges, from one database into another.

    snapshot: exported in the source. major: of the newer server, which the programs must match.
    check: called every CHECK_S; its exceptions end the copy.
    Raises CopyFailed.
    """
    with tempfile.TemporaryFile() as words:
        reading = [*_dump(source, snapshot, major), *WITHOUT_OWNERS, "--compress=0"]
        dump = _start(reading, source, words, stdout=subprocess.PIPE)
        writing = [*_restore(target, major), "--no-privileges"]
        restore = _start(writing, target, words, stdin=dump.stdout)
        if dump.stdout is not None:
            # Only the programs have the pipe open now: when one of them ends, the other one ends.
            dump.stdout.close()
        _finish([dump, restore], words, check)


def dump_to(file: Path, source: ProgramLogin, *, snapshot: str, major: int) -> None:
    """Write a database to a file in custom format, with owners and privileges.

    Raises CopyFailed.
    """
    with tempfile.TemporaryFile() as words:
        command = [*_dump(source, snapshot, major), "--compress=6", f"--file={file}"]
        _finish([_start(command, source, words)], words)


def dump_into(
    write: Callable[[bytes], Any],
    source: ProgramLogin,
    *,
    snapshot: str,
    major: int,
    timeout_s: float,
) -> None:
    """Pass a dump in custom format, without owners and privileges, to ``write`` in pieces.

    An exception of ``write`` ends the program. Raises CopyFailed.
    """
    with tempfile.TemporaryFile() as words:
        command = [*_dump(source, snapshot, major), *WITHOUT_OWNERS, *OWN_ONLY, "--compress=6"]
        dump = _start(command, source, words, stdout=subprocess.PIPE)
        # Reading ends when the program does.
        watch = threading.Timer(timeout_s, dump.kill)
        watch.start()
        try:
            while dump.stdout is not None and (piece := dump.stdout.read(PIECE_BYTES)):
                write(piece)
            _finish([dump], words)
        finally:
            watch.cancel()
            if dump.poll() is None:
                dump.kill()
            if dump.stdout is not None:
                dump.stdout.close()
            dump.wait()


def restore_from(
    file: Path,
    target: ProgramLogin,
    entries: Sequence[str],
    *,
    major: int,
    check: Callable[[], None] | None = None,
) -> None:
    """Restore entries of a dump, in its order, as the target's role.

    check: called every CHECK_S; its exceptions end the restore. Raises CopyFailed.
    """
    with tempfile.TemporaryFile() as words, _listed(entries) as listed:
        command = [*_restore(target, major), f"--use-list={listed}", str(file)]
        _finish([_start(command, target, words)], words, check)


def print_entries(file: Path, entries: Sequence[str], *, major: int) -> str:
    """Return the SQL of entries of a dump, to be searched, not run. Raises CopyFailed."""
    with _listed(entries) as listed:
        return _printed([f"--use-list={listed}", "--file=-", str(file)], major)


def list_archive(file: Path, *, major: int) -> list[str]:
    """Return the lines of a dump's table of contents. Raises CopyFailed."""
    return _printed(["--list", str(file)], major).splitlines()


@contextmanager
def _listed(entries: Sequence[str]) -> Iterator[str]:
    """Yield the name of a file that lists entries of a dump."""
    with tempfile.NamedTemporaryFile("w") as listed:
        listed.writelines(f"{entry};\n" for entry in entries)
        listed.flush()
        yield listed.name


def _printed(options: Sequence[str], major: int) -> str:
    """Return what pg_restore prints. Raises CopyFailed."""
    command = [str(folder(major) / "pg_restore"), *options]
    with tempfile.TemporaryFile() as words, tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(  # noqa: S603 - our own program, and a path of an operator
            command, env={"LC_ALL": "C"}, cwd="/", stdout=printed, stderr=words
        )
        _finish([process], words)
        printed.seek(0)
        return printed.read().decode(errors="replace")


def _dump(source: ProgramLogin, snapshot: str, major: int) -> list[str]:
    program = str(folder(major) / "pg_dump")
    return [program, *DUMP, f"--snapshot={snapshot}", f"--dbname={source.conninfo()}"]


def _restore(target: ProgramLogin, major: int) -> list[str]:
    return [str(folder(major) / "pg_restore"), *RESTORE, f"--dbname={target.conninfo()}"]


def _start(
    command: Sequence[str],
    session: ProgramLogin,
    words: IO[bytes],
    *,
    stdin: IO[bytes] | int | None = subprocess.DEVNULL,
    stdout: IO[bytes] | int | None = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    environment = {
        "LC_ALL": "C",
        "PGPASSWORD": session.password,
        "PGCONNECT_TIMEOUT": str(settings.SQL.connect_timeout_s),
        "PGAPPNAME": "zonal-copy",
    }
    return subprocess.Popen(  # noqa: S603 - our own programs; no word comes from a tenant
        command, env=environment, cwd="/", stdin=stdin, stdout=stdout, stderr=words
    )


def _finish(
    processes: Sequence[subprocess.Popen[bytes]],
    words: IO[bytes],
    check: Callable[[], None] | None = None,
) -> None:
    deadline = time.monotonic() + settings.SQL.copy_timeout_s
    try:
        statuses = [_wait(process, deadline, check) for process in processes]
    except subprocess.TimeoutExpired:
        sentence = f"It took more than {settings.SQL.copy_timeout_s} s."
        raise CopyFailed(sentence) from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    if any(statuses):
        raise CopyFailed(first_error(words))


def _wait(
    process: subprocess.Popen[bytes], deadline: float, check: Callable[[], None] | None
) -> int:
    """Return a program's exit status. Raises subprocess.TimeoutExpired, and as ``check`` does."""
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        try:
            return process.wait(left_s if check is None else min(left_s, CHECK_S))
        except subprocess.TimeoutExpired:
            if check is None or left_s <= CHECK_S:
                raise
            check()


def first_error(words: IO[bytes]) -> str:
    """Return the beginning of the first error in a program's output."""
    words.seek(0)
    lines = words.read(2**16).decode(errors="replace").splitlines()
    errors = [line for line in lines if "error" in line] or lines
    return "".join(errors[:1])[:ERROR_CHARS]


@lru_cache(maxsize=8)
def folder(major: int) -> Path:
    """Return the folder of pg_dump and pg_restore for a server's major version.

    That of ZPG_BINDIR if it fits; else that of the server's own version, or of the next later one.
    Raises ProgramsMissing; in production also for a release with known security holes.
    """
    fitting: list[tuple[int, Path]] = []
    refused = ""
    for candidate in dict.fromkeys(_candidates()):
        if not (candidate / "pg_dump").is_file() or not (candidate / "pg_restore").is_file():
            continue
        try:
            # Asks pg_dump, because `postgres` may not be installed.
            found, minor = read_version(candidate, "pg_dump")
        except BinariesError as exc:
            refused += f" {exc}."
            continue
        if complaint := _complaint(found, minor, major):
            refused += f" {candidate} has {found}.{minor}, {complaint}."
        elif str(candidate) == settings.SERVER.postgres_bindir:
            return candidate
        else:
            fitting.append((found, candidate))
    if not fitting:
        raise ProgramsMissing(major, refused)
    return min(fitting, key=itemgetter(0))[1]


def _complaint(found: int, minor: int, major: int) -> str:
    """Return why programs of a version cannot be used for a server's major version, or ''."""
    if found < major:
        return "which is older than the server"
    if found >= TIMEOUT_SINCE > major:
        return "whose pg_restore needs a server of 17 or later"
    if minor < MINOR_FLOOR.get(found, 0) and settings.IS_PRODUCTION:
        return "which has known security holes"
    return ""


def _candidates() -> Iterator[Path]:
    if settings.SERVER.postgres_bindir:
        yield Path(settings.SERVER.postgres_bindir)
    yield from system_folders(os.environ, "pg_dump")
    bundled = private_copy(make_runtime_dir(settings.DATA_DIR))
    if bundled is not None:
        yield bundled
