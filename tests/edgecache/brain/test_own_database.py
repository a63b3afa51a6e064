"""A brain with a separate database has all its tables there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.edgecache.brain.support import ClusterRows
from tests.edgecache.conftest import ROOT
from tests.edgecache.databases import new_database

pytestmark = pytest.mark.slow


@pytest.fixture
def manage(tmp_path: Path) -> "Manage":
    """Return the management commands of an installation with two new databases."""
    return Manage(tmp_path)


class Manage:
    """Runs management commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, control: str, brain: str, *words: str) -> str:
        """Run a command; return its output."""
        variables = {
            "DATABASE_URL": control,
            "ZBRAIN_DATABASE_URL": brain,
            "ZDATA_DIR": str(self.folder),
        }
        ended = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


def test_the_brain_s_tables_are_in_its_own_database_only(manage: Manage) -> None:
    with new_database() as control, new_database() as brain:
        said = manage.run(control, brain, "bootstrap", "--migrate", "--json")
        assert '"bucket": "development"' in said
        assert ClusterRows(brain).value("SELECT name FROM brain_bucket") == "development"

        tables = {row[0] for row in ClusterRows(brain).all(TABLES)}
        others = {row[0] for row in ClusterRows(control).all(TABLES)}
        assert "brain_node" in tables
        assert {name for name in tables if not name.startswith("brain_")} == {"django_migrations"}
        assert not {name for name in others if name.startswith("brain_")}
        assert "accounts_user" in others

        # As without the bootstrap command: no migration is left.
        planned = manage.run(control, brain, "migrate", "--plan", "--database", "brain")
        assert "No planned migration operations" in planned
        manage.run(
            control, brain, "registerlocalnode", str(manage.folder / "node"), "--region", "eu-west"
        )
        assert ClusterRows(brain).value("SELECT region FROM brain_node") == "eu-west"
