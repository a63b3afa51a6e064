"""Who a cluster belongs to on this machine: PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platform_site.embedded.errors import ClusterError
from platform_site.embedded.terminal import warn

SHARED_FALLBACKS: Final = ("postgres", "nobody")
TIMEOUT_S: Final = 20


@dataclass(frozen=True)
class Owner:
    """A system user that a cluster's files and processes belong to."""

    name: str
    uid: int
    gid: int


def is_root() -> bool:
    """Say whether we can and must become somebody else for PostgreSQL."""
    return os.geteuid() == 0


def owner_of(cluster: str) -> Owner | None:
    """Give a cluster's system user, made when it is missing; None when we are not root.

    One user a cluster, so that whoever breaks out of the tenants' server does not read the
    control plane's files. Where users cannot be made (a read-only /etc), an existing one is
    shared with a loud line. Raises ClusterError when there is none.
    """
    if not is_root():
        return None
    name = f"zonal-{cluster}"
    owner = _existing(name)
    if owner is None and _create(name):
        owner = _existing(name)
    return owner or _shared(name)


def give(path: Path, owner: Owner | None, *, mode: int) -> None:
    """Set the mode, and the owner when there is one."""
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner.uid, owner.gid)


def _existing(name: str) -> Owner | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Owner(name, entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None


def _create(name: str) -> bool:
    """Make a system user with useradd (most systems) or adduser (BusyBox)."""
    candidates = (
        (
            *("useradd", "--system", "--user-group", "--no-create-home"),
            *("--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name),
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
    # Two starts may race for the same name: the loser finds the user made by the winner.
    return _existing(name) is not None


def _shared(name: str) -> Owner:
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
