"""The folders of an instance: its data, its clusters, and sockets with short paths."""

import errno
import hashlib
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.machine.errors import ClusterError
from common.machine.files import read_text, write_private
from common.machine.owners import SystemUser, give, is_root

# The parent folder of clusters if run by root: their system users cannot enter a 0700 home. It is
# not the StateDirectory of deploy/systemd, all of which systemd gives to the user of the units.
SYSTEM_ROOT: Final = Path("/var/lib/zonal-local")
PORT: Final = 5432
# sun_path holds 107 bytes on Linux and 103 on macOS.
SOCKET_PATH_LIMIT_BYTES: Final = 100


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The folders of one instance of the platform.

    data_dir: chosen by the user, 0700. clusters_dir: the homes of its clusters, inside data_dir
    unless run by root. runtime_dir: the PostgreSQL binaries, shared by all instances of root.
    """

    data_dir: Path
    clusters_dir: Path
    runtime_dir: Path

    def cluster_home(self, name: str) -> Path:
        """Return the folder of one cluster: its data, socket, passwords and lock."""
        return self.clusters_dir / name


def data_dir_from(environ: Mapping[str, str]) -> Path:
    """Return ZDATA_DIR as an absolute path; `./var` when it is unset."""
    return Path(environ.get("ZDATA_DIR", "").strip() or "var").absolute()


def make_private(folder: Path) -> None:
    """Create a folder that only its owner may enter. Raises ClusterError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        sentence = (
            f"The data folder {folder} cannot be made private: {error.strerror}. Set ZDATA_DIR to "
            "a folder that belongs to you."
        )
        raise ClusterError(sentence) from error


def make_folders(data_dir: Path) -> Folders:
    """Return the folders of an instance; the clusters create their own."""
    make_private(data_dir)
    runtime_dir = make_runtime_dir(data_dir)
    if not is_root():
        return Folders(data_dir=data_dir, clusters_dir=data_dir, runtime_dir=runtime_dir)
    clusters_dir = SYSTEM_ROOT / _instance_name(data_dir)
    return Folders(data_dir=data_dir, clusters_dir=clusters_dir, runtime_dir=runtime_dir)


def make_runtime_dir(data_dir: Path) -> Path:
    """Return the folder of the PostgreSQL binaries: in the data folder, or shared if run by root.

    Temporary clusters use the same binaries, so that they are copied once.
    """
    if is_root():
        make_passable(SYSTEM_ROOT / "postgresql")
        return SYSTEM_ROOT / "postgresql"
    make_private(data_dir)
    return data_dir / "postgresql"


def make_passable(folder: Path) -> None:
    """Create a folder below SYSTEM_ROOT that system users may traverse but not list."""
    for path in (SYSTEM_ROOT, folder):
        try:
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o711)
        except OSError as error:
            sentence = (
                f"PostgreSQL started by root lives in {path}, which cannot be created: "
                f"{error.strerror}. Start as an ordinary user instead."
            )
            raise ClusterError(sentence) from error


def make_socket_dir(
    home: Path, owner: SystemUser | None, *, longest_name: str = f".s.PGSQL.{PORT}"
) -> Path:
    """Create a 0700 folder for sockets, with a path short enough for one of the longest name.

    It is in the home folder, or in a temporary one if that is too long or read-only.
    """
    folder = home / "run"
    if len(os.fsencode(folder / longest_name)) >= SOCKET_PATH_LIMIT_BYTES:
        folder = _short_folder(home)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        folder = _short_folder(home)
        folder.mkdir(mode=0o700, exist_ok=True)
    _refuse_strangers(folder, owner)
    give(folder, owner, mode=0o700)
    return folder


def _instance_name(data_dir: Path) -> str:
    """Return a short name of a data folder, stable until the folder is deleted.

    Deleting the data folder therefore also resets an instance of root, and a copied folder does not
    share the databases of the original.
    """
    mark = data_dir / "instance"
    if not mark.exists():
        write_private(mark, secrets.token_hex(8))
    return _digest(f"{data_dir.resolve()}\0{read_text(mark)}")


def _short_folder(home: Path) -> Path:
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108 - verified below
    if not base.is_dir() or len(os.fsencode(base)) > SOCKET_PATH_LIMIT_BYTES // 2:
        base = Path(tempfile.gettempdir())
    return base / f"zonal-{os.geteuid()}-{_digest(str(home.resolve()))}"


def _refuse_strangers(folder: Path, owner: SystemUser | None) -> None:
    """Refuse a folder of another user, who could have created it in /tmp to impersonate us."""
    status = folder.lstat()
    allowed = {os.geteuid(), owner.uid if owner else os.geteuid()}
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in allowed:
        sentence = f"{folder} belongs to another user; remove it and start again."
        raise ClusterError(sentence)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
