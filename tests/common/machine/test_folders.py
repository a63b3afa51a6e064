"""The folders of an instance: short socket paths, private folders, separate instances."""

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from common.machine.errors import ClusterError
from common.machine.folders import data_dir_from, make_folders, make_socket_dir


def test_a_socket_path_stays_short_below_a_long_folder(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 40) / "control"

    folder = make_socket_dir(home, None)

    assert len(os.fsencode(folder / ".s.PGSQL.5432")) < 100
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert make_socket_dir(home, None) == folder
    folder.rmdir()


def test_sockets_have_a_folder_where_the_home_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, real = tmp_path / "data", Path.mkdir

    def refuse(self: Path, *args: Any, **options: Any) -> None:
        if self.is_relative_to(home):
            raise OSError(errno.EROFS, "Read-only file system")
        real(self, *args, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    folder = make_socket_dir(home, None)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.rmdir()


def test_a_socket_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 40) / "control"
    folder = make_socket_dir(home, None)
    folder.rmdir()
    folder.symlink_to(tmp_path)

    try:
        with pytest.raises(ClusterError, match="belongs to another user"):
            make_socket_dir(home, None)
    finally:
        folder.unlink()


def test_the_data_folder_is_var_unless_the_setting_names_one() -> None:
    assert data_dir_from({}) == Path.cwd() / "var"
    assert data_dir_from({"ZDATA_DIR": " "}) == Path.cwd() / "var"
    assert data_dir_from({"ZDATA_DIR": "/srv/z"}) == Path("/srv/z")


def test_the_data_folder_is_made_private(tmp_path: Path) -> None:
    data_dir = tmp_path / "var"
    data_dir.mkdir(mode=0o755)

    make_folders(data_dir)

    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


def test_a_deleted_data_folder_starts_a_new_instance(tmp_path: Path) -> None:
    data_dir = tmp_path / "var"
    first = make_folders(data_dir).clusters_dir
    assert make_folders(data_dir).clusters_dir == first
    shutil.rmtree(data_dir)

    second = make_folders(data_dir).clusters_dir

    if os.geteuid() == 0:
        assert second != first
    else:
        # They were inside, and went with it.
        assert second == data_dir


def test_a_data_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ClusterError, match="ZDATA_DIR"):
        make_folders(tmp_path / "file" / "var")
