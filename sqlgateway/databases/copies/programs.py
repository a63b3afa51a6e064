"""Run ``pg_dump`` and ``pg_restore``, in custom format.

psql is never used: a dump in plain text can contain its meta-commands, which run programs on this
machine (CVE-2025-8714). pg_restore only sends SQL, which runs as the tenant's own role.

Rows, indexes and views are restored with the search_path of the tenant's sessions, not with the
empty one that pg_dump writes into a dump: functions that name others without a schema work in the
database, so they must work in its copy. The path has schemas of the tenant only, and pg_catalog
before them; no session of the platform itself has it.
"""

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Final, Literal, Protocol

from django.conf import settings
from psycopg.conninfo import make_conninfo

from common.machine.errors import BinariesError
from common.machine.folders import make_runtime_dir
from common.machine.postgres_programs import MINOR_FLOOR, private_copy, read_version, system_folders
from sqlgateway.clusters import silence
from sqlgateway.clusters.servers import ClusterAddress
from sqlgateway.databases.copies import CopyFailed, CopyTooSlow, ProgramsMissing
from sqlgateway.pg.session_settings import SEARCH_PATH, startup_options

DUMP: Final = (
    "--format=custom",
    "--no-password",
    "--no-subscriptions",
    "--no-security-labels",
    "--lock-wait-timeout=20s",
)
RESTORE: Final = (
    "--no-password",
    "--no-owner",
    "--exit-on-error",
    # As in the tenant's sessions: otherwise a view of a table with FORCE ROW LEVEL SECURITY fails.
    "--enable-row-security",
    # So that an error names its object.
    "--verbose",
)
# What pg_dump writes at the beginning of a dump, and what a restore reads in its place. Of the same
# length, which stands before the text.
EMPTY_PATH: Final = b"SELECT pg_catalog.set_config('search_path', '', false);"
OWN_PATH: Final = f"SET search_path = {SEARCH_PATH};".encode().ljust(len(EMPTY_PATH))
WITHOUT_OWNERS: Final = ("--no-owner", "--no-privileges")
# The platform's own schema does not contain data of the tenant.
OWN_ONLY: Final = ("--exclude-schema=zonal",)
# pg_restore names the object, then repeats the server's message.
ENTRY: Final = re.compile(
    r"^pg_restore: from TOC entry \d+; \d+ \d+ "
    r"(MATERIALIZED VIEW(?: DATA)?|TABLE DATA|(?:CHECK|FK) CONSTRAINT|[A-Z]+) (.*) \S*$",
    re.MULTILINE,
)
REFUSED: Final = re.compile(
    r"^pg_restore: error: (?:could not execute query|COPY failed for table \".*\")"
    r": (?!FATAL|PANIC)[^:\n]+:  (?P<message>.*)$",
    re.MULTILINE,
)
WITHIN: Final = re.compile(r"^(?:CONTEXT:  )?((?:SQL|PL/pgSQL) function .*)$", re.MULTILINE)
# A server's own state, and what others did at the same time. A message in another language than
# English is not found here, so that its copy is not attempted again.
PASSING: Final = re.compile(
    r"deadlock detected|out of (shared )?memory|No space left|could not (extend|write|read|open) "
    r"|canceling statement|terminating connection|too many |cache lookup failed"
    r"|concurrently updated|could not serialize|temporary file size exceeds|in recovery"
)
OBJECTS: Final = {"TABLE DATA": "rows of table", "MATERIALIZED VIEW DATA": "materialized view"}
Section = Literal["pre-data", "data", "post-data"]
PIECE_BYTES: Final = 2**16
# How long a program that has failed may take to end.
FAILURE_S: Final = 1.0
ERROR_CHARS: Final = 300
CHECK_S: Final = 5.0
# From this version on pg_restore sets transaction_timeout, which older servers do not have.
TIMEOUT_SINCE: Final = 17


@dataclass(frozen=True, slots=True)
class ProgramLogin:
    """How a program logs in."""

    address: ClusterAddress
    dbname: str
    user: str
    password: str = field(repr=False)

    def conninfo(self) -> str:
        """Return a connection string without the password: other users can see arguments."""
        network: dict[str, Any] = dict(self.address.network)
        return make_conninfo("", **network, user=self.user, dbname=self.dbname)


class Archive(Protocol):
    """A dump that is restored section by section, so that it is read several times."""

    def pieces(self, section: Section) -> Iterator[bytes]:
        """Yield the dump from its beginning, as far as the restore of a section needs it."""

    def stop(self) -> str:
        """End the program that makes the dump; return why it had failed before, or ''."""


class DumpFile:
    """A dump in a file, which is not changed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pieces(self, section: Section) -> Iterator[bytes]:
        """Yield the file."""
        with self._file.open("rb") as opened:
            while piece := opened.read(PIECE_BYTES):
                yield piece

    def stop(self) -> str:
        """Do nothing."""
        return ""


class RunningDump:
    """The output of a pg_dump that runs. Its beginning, without most rows, is kept in a file."""

    def __init__(self, dump: subprocess.Popen[bytes], words: IO[bytes], kept: IO[bytes]) -> None:
        self._dump, self._words, self._kept = dump, words, kept

    def pieces(self, section: Section) -> Iterator[bytes]:
        """Yield the beginning, and for the first two sections what follows."""
        self._kept.seek(0)
        while piece := self._kept.read(PIECE_BYTES):
            yield piece
        while section != "post-data" and self._dump.stdout and (piece := self._read()):
            if section == "pre-data":
                self._kept.write(piece)
            yield piece

    def stop(self) -> str:
        """End pg_dump; return why it had failed before, or ''."""
        try:
            # One that fails ends by itself; another one waits for a reader of its output.
            return first_error(self._words) if self._dump.wait(FAILURE_S) else ""
        except subprocess.TimeoutExpired:
            self._dump.kill()
            self._dump.wait()
            return ""

    def finish(self, deadline: float) -> None:
        """Wait for pg_dump's end, all rows having been read. Raises CopyFailed."""
        while self._dump.stdout and self._read():
            pass
        _finish([self._dump], self._words, deadline)

    def _read(self) -> bytes:
        return self._dump.stdout.read(PIECE_BYTES) if self._dump.stdout is not None else b""


@contextmanager
def running_dump(source: ProgramLogin, *, snapshot: str, major: int) -> Iterator[RunningDump]:
    """Yield a dump that is being made, without owners and privileges.

    snapshot: exported in the source. Raises CopyFailed.
    """
    command = [*_dump(source, snapshot, major), *WITHOUT_OWNERS, "--compress=0"]
    with tempfile.TemporaryFile() as words, tempfile.TemporaryFile() as kept:
        dump = _start(command, source, words, stdout=subprocess.PIPE)
        try:
            yield RunningDump(dump, words, kept)
        finally:
            dump.kill()
            dump.wait()
            if dump.stdout is not None:
                dump.stdout.close()


def restore_section(
    archive: Archive,
    target: ProgramLogin,
    section: Section,
    *,
    entries: Sequence[str] | None,
    major: int,
    deadline: float,
    check: Callable[[], None] | None,
) -> None:
    """Restore a section of a dump as the target's role.

    entries: of the dump; None for all but privileges. deadline: of time.monotonic().
    check: called every CHECK_S; its exceptions end the restore. Raises CopyFailed.
    """
    with tempfile.TemporaryFile() as words, ExitStack() as stack:
        command = [*_restore(target, major), f"--section={section}"]
        if entries is None:
            command.append("--no-privileges")
        else:
            command.append(f"--use-list={stack.enter_context(_listed(entries))}")
        # The tenant's functions compute what they compute in the tenant's sessions.
        address = target.address
        options = startup_options(address, "admin", is_copy=True) if address.takes_options else ""
        restore = _start(command, target, words, options=options, stdin=subprocess.PIPE)
        feeder = threading.Thread(target=_feed, args=(archive.pieces(section), restore.stdin))
        feeder.start()
        try:
            _finish([restore], words, deadline, check)
        except CopyFailed as exc:
            cause = archive.stop()
            if reason := _refusal(words, target):
                raise CopyFailed(reason, reason=reason) from exc
            if cause:
                raise CopyFailed(cause) from exc
            raise
        except BaseException:
            archive.stop()
            raise
        finally:
            # pg_restore has ended, and with it the thread: at its next piece, or at the dump's end.
            feeder.join()


def _feed(pieces: Iterator[bytes], pipe: IO[bytes] | None) -> None:
    """Give a dump to pg_restore, until it has read what it needs."""
    if pipe is None:
        return
    with suppress(BrokenPipeError), pipe:
        for number, piece in enumerate(pieces):
            pipe.write(piece if number else piece.replace(EMPTY_PATH, OWN_PATH, 1))


def dump_to(file: Path, source: ProgramLogin, *, snapshot: str, major: int) -> None:
    """Write a database to a file in custom format, with owners and privileges.

    Raises CopyFailed.
    """
    with tempfile.TemporaryFile() as words:
        command = [*_dump(source, snapshot, major), "--compress=6", f"--file={file}"]
        _finish([_start(command, source, words)], words, deadline_of_copy())


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
            is_begun = False
            while dump.stdout is not None and (piece := dump.stdout.read(PIECE_BYTES)):
                write(piece if is_begun else piece.replace(EMPTY_PATH, OWN_PATH, 1))
                is_begun = True
            _finish([dump], words, deadline_of_copy())
        finally:
            watch.cancel()
            if dump.poll() is None:
                dump.kill()
            if dump.stdout is not None:
                dump.stdout.close()
            dump.wait()


def restore_privileges(
    file: Path, target: ProgramLogin, entries: Sequence[str], *, major: int
) -> None:
    """Restore entries of a dump that run no code of the tenant. Raises CopyFailed."""
    with tempfile.TemporaryFile() as words, _listed(entries) as listed:
        command = [*_restore(target, major), f"--use-list={listed}", str(file)]
        _finish([_start(command, target, words)], words, deadline_of_copy())


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
        _finish([process], words, deadline_of_copy())
        printed.seek(0)
        return printed.read().decode(errors="replace")


def _dump(source: ProgramLogin, snapshot: str, major: int) -> list[str]:
    program = str(folder(major) / "pg_dump")
    return [program, *DUMP, f"--snapshot={snapshot}", f"--dbname={source.conninfo()}"]


def _restore(target: ProgramLogin, major: int) -> list[str]:
    return [str(folder(major) / "pg_restore"), *RESTORE, f"--dbname={target.conninfo()}"]


def _start(
    command: Sequence[str],
    login: ProgramLogin,
    words: IO[bytes],
    *,
    options: str = "",
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    environment = {
        "LC_ALL": "C",
        "PGPASSWORD": login.password,
        "PGCONNECT_TIMEOUT": str(silence.CONNECT_TIMEOUT_S),
        "PGAPPNAME": "zonal-copy",
        "PGOPTIONS": options,
    }
    return subprocess.Popen(  # noqa: S603 - our own programs; no word comes from a tenant
        command, env=environment, cwd="/", stdin=stdin, stdout=stdout, stderr=words
    )


def deadline_of_copy() -> float:
    """Return when a copy that begins now must have ended, in seconds of time.monotonic()."""
    return time.monotonic() + settings.SQL.copy_timeout_s


def too_slow() -> CopyTooSlow:
    """Return the error of a copy that has reached its deadline."""
    sentence = f"It took more than {settings.SQL.copy_timeout_s} s."
    return CopyTooSlow(sentence, reason=f"The copy was stopped. {sentence}")


def _finish(
    processes: Sequence[subprocess.Popen[bytes]],
    words: IO[bytes],
    deadline: float,
    check: Callable[[], None] | None = None,
) -> None:
    try:
        statuses = [_wait(process, deadline, check) for process in processes]
    except subprocess.TimeoutExpired:
        raise too_slow() from None
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
    """Return the beginning of the first error in a program's output, for operators."""
    lines = _text(words).splitlines()
    errors = [line for line in lines if ": error: " in line] or lines
    return "".join(errors[:1])[:ERROR_CHARS]


def _refusal(words: IO[bytes], target: ProgramLogin) -> str:
    """Return what the server said about an object that it did not restore, for the tenant.

    '' if that is not about the object: another attempt may succeed. DETAIL has rows of the tenant,
    which not every member may read, and is left out.
    """
    text = _text(words)
    said = REFUSED.search(text)
    if said is None or PASSING.search(said["message"]):
        return ""
    entry = ENTRY.findall(text[: said.start()])
    where = f"{OBJECTS.get(entry[-1][0], entry[-1][0].lower())} {entry[-1][1]}: " if entry else ""
    within = WITHIN.search(text, said.end())
    inside = f" ({within[1]})" if within else ""
    return target.address.plain(f"{where}{said['message'][:ERROR_CHARS]}{inside}")


def _text(words: IO[bytes]) -> str:
    """Return the end of a program's output: it ends at the first error."""
    size = words.seek(0, os.SEEK_END)
    words.seek(max(0, size - 2**16))
    return words.read().decode(errors="replace")


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
