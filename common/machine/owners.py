"""The system users that own clusters: PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.machine.errors import ClusterError
from common.machine.terminal import warn

SHARED_FALLBACKS: Final = ("postgres", "nobody")
TIMEOUT_S: Final = 20


@dataclass(frozen=True)
class SystemUser:
    """A system user that a cluster's files and processes belong to."""

    name: str
    uid: int
    gid: int


def is_root() -> bool:
    """True if this process is root, so that PostgreSQL needs another user."""
    return os.geteuid() == 0


def owner_of(cluster: str) -> SystemUser | None:
    """Return a cluster's system user, created if missing; None if this process is not root.

    Each cluster has its own user, so that an escape from the tenants' server cannot read the
    control plane's files. If users cannot be created (a read-only /etc), clusters share an existing
    user, with a warning. Raises ClusterError if there is none.
    """
    if not is_root():
        return None
    name = f"zonal-{cluster}"
    owner = _existing(name)
    if owner is None and _create(name):
        owner = _existing(name)
    return owner or _shared(name)


def give(path: Path, owner: SystemUser | None, *, mode: int) -> None:
    """Set the mode, and the owner when there is one."""
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner.uid, owner.gid)


def _existing(name: str) -> SystemUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return SystemUser(name, entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None


def _create(name: str) -> bool:
    """Create a system user with useradd (most systems) or adduser (BusyBox)."""
    candidates = (
        (
            "useradd",
            "--system",
            "--user-group",
            "--no-create-home",
            "--home-dir",
            "/nonexistent",
            "--shell",
            "/usr/sbin/nologin",
            name,
        ),
        ("adduser", "-S", "-D", "-H", name),
    )
    for command in candidates:
        program = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            continue
        result = subprocess.run(  # noqa: S603 - fixed words, no outside input
            [program, *command[1:]], capture_output=True, timeout=TIMEOUT_S, check=False
        )
        if result.returncode == 0:
            return True
    # Two starts may race to create the same user.
    return _existing(name) is not None


def _shared(name: str) -> SystemUser:
    for fallback in SHARED_FALLBACKS:
        owner = _existing(fallback)
        if owner is not None:
            warn(
                f"The system user {name} cannot be created; PostgreSQL runs as {fallback}, which "
                "separates the clusters less well."
            )
            return owner
    sentence = (
        f"PostgreSQL does not run as root, and the system user {name} cannot be created. Create "
        "it, start as an ordinary user, or set DATABASE_URL and ZSQL_CLUSTER_URL."
    )
    raise ClusterError(sentence)
