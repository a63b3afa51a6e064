"""Create the data folder of a cluster."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from common.machine.errors import ClusterError
from common.machine.files import write_private
from common.machine.owners import SystemUser, give
from common.machine.postgres_programs import Binaries
from operations.embedded.supervisor.launch import PRIVATE_UMASK, Launch, run

TIMEOUT_S: Final = 180
BUILTIN_PROVIDER_SINCE: Final = 17


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
    workshop = data.parent / "initdb"
    shutil.rmtree(workshop, ignore_errors=True)
    workshop.mkdir()
    give(workshop, owner, mode=0o700)
    password_file = workshop / "password"
    write_private(password_file, password)
    give(password_file, owner, mode=0o600)
    command = (
        binaries.path("initdb"),
        "--pgdata",
        str(workshop / "data"),
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
        refusal = _initdb((*command, *locale), binaries, owner=owner, cwd=workshop)
        if refusal is None:
            (workshop / "data").rename(data)
            shutil.rmtree(workshop)
            return
        said = refusal
    sentence = f"PostgreSQL could not create {data}:\n{said}"
    raise ClusterError(sentence)


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
        result = run(launch, timeout_s=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"initdb took more than {TIMEOUT_S} s"
    return None if result.returncode == 0 else result.stdout.strip()


def _locales(major: int) -> tuple[tuple[str, ...], ...]:
    """Return locale arguments in order of preference.

    Code point order with Unicode case rules, the same on every machine: from PostgreSQL itself
    where it has them, else from the C library, else plain C (macOS has no C.UTF-8).
    """
    if major >= BUILTIN_PROVIDER_SINCE:
        return (("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),)
    return (("--locale=C.UTF-8",), ("--locale=C",))
