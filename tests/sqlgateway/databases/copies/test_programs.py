"""Which pg_dump and pg_restore copy a database."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from common.machine import postgres_programs
from sqlgateway.databases.copies import ProgramsMissing, programs
from tests.operations.doctor.support import findings

NAMES = ("pg_dump", "pg_restore")


@pytest.fixture(autouse=True)
def system(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A system that has no PostgreSQL; the bundled one is away, too."""
    settings.SERVER = replace(settings.SERVER, postgres_bindir="")
    monkeypatch.setattr(postgres_programs, "DEBIAN_ROOT", tmp_path / "lib")
    monkeypatch.setattr(programs, "private_copy", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    programs.folder.cache_clear()
    yield tmp_path
    programs.folder.cache_clear()


def _install(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    for name in NAMES:
        path = folder / name
        path.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        path.chmod(0o755)
    return folder


def test_debians_links_to_a_wrapper_lead_to_the_programs_of_the_servers_version(
    system: Path,
) -> None:
    shared = system / "share"
    shared.mkdir()
    wrapper = shared / "pg_wrapper"
    wrapper.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 18.9'\n")
    wrapper.chmod(0o755)
    (system / "bin").mkdir()
    for name in NAMES:
        (system / "bin" / name).symlink_to(wrapper)
    own = _install(system / "lib/15/bin", "15.99 (Debian 15.99-1)")
    _install(system / "lib/18/bin", "18.9")

    assert programs.folder(15) == own
    assert programs.folder(17) == system / "lib/18/bin"


def test_programs_whose_restore_the_server_refuses_are_not_used(system: Path) -> None:
    """pg_restore 17 sets transaction_timeout, which PostgreSQL 16 does not have."""
    _install(system / "bin", "17.99")

    with pytest.raises(ProgramsMissing, match=r"has 17\.99, whose pg_restore needs a server of 17"):
        programs.folder(16)


def test_the_chosen_folder_takes_precedence(system: Path, settings: Settings) -> None:
    chosen = _install(system / "chosen", "18.99")
    settings.SERVER = replace(settings.SERVER, postgres_bindir=str(chosen))
    _install(system / "lib/17/bin", "17.99")

    assert programs.folder(17) == chosen


@pytest.mark.django_db
def test_doctor_says_that_no_program_copies_databases_and_why(
    system: Path, settings: Settings
) -> None:
    _install(system / "bin", "18.0")
    settings.IS_PRODUCTION = True
    settings.SERVER = replace(settings.SERVER, postgres_bindir="/nowhere")

    [(level, message, advice)] = findings("programs", is_healthy=False)

    assert level == "failed"
    assert message.startswith("No backup, clone or move")
    # Why depends on the server's version.
    assert "has 18.0, which has known security holes" in advice or "has 18.0, whose" in advice
    assert "set ZPG_BINDIR" in advice
