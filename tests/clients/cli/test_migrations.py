"""SQL that Alembic writes, run by `zonal sql -f`: up, down, and after a failed step."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.cli.conftest import Run

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parent / "alembic_project/alembic.ini"
TABLES = """SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"""


def alembic(folder: Path, *arguments: str) -> str:
    """Return a file with what the tool writes."""
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-c", str(PROJECT), *arguments, "--sql"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file = folder / f"{'-'.join(arguments).replace(':', '-')}.sql"
    file.write_text(done.stdout)
    return str(file)


def test_alembic_migrates_up_and_down_and_after_a_failed_step(alice: Run, tmp_path: Path) -> None:
    def value(query: str) -> str:
        return alice("sql", "--csv", "-c", query).out.split("\n")[1]

    assert alice("env", "create", "migrated").status == 0
    assert alice("env", "use", "migrated").status == 0
    first, second = alembic(tmp_path, "upgrade", "0001"), alembic(tmp_path, "upgrade", "0001:head")
    down = alembic(tmp_path, "downgrade", "0002:base")
    version = "SELECT version_num FROM alembic_version"
    assert alice("sql", "-f", first).status == 0
    assert alice("sql", "-c", "INSERT INTO notes (text) VALUES ('first')").status == 0

    failed = alice("sql", "-f", second)

    assert failed.status == 1
    assert f"{second}: 23502" in failed.err
    assert (value(version), value(TABLES)) == ("0001", "alembic_version notes")
    assert alice("sql", "-c", "DELETE FROM notes").status == 0
    assert alice("sql", "-f", second).status == 0
    assert (value(version), value(TABLES)) == ("0002", "alembic_version notes stars")
    assert alice("sql", "-f", down).status == 0
    assert value(TABLES) == "alembic_version"
    again = alice("sql", "-f", first)
    assert (again.status, "42P07" in again.err) == (1, True)
    assert alice("env", "use", "live").status == 0
    assert alice("env", "delete", "migrated", "--yes").status == 0
