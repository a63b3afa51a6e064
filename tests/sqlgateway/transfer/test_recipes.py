"""The recipes of docs/sql.md for streams and imports work as they are printed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from environments.models import Organization
from tests import cast
from tests.sqlgateway.support import Caller

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/sql.md"
PRINTED = "http://127.0.0.1:8000"


def recipe(heading: str, label: str) -> str:
    """Return the first block of code after a label in a section."""
    section = DOCUMENT.read_text().partition(f"\n## {heading}\n")[2]
    block = re.search(r"(?:^    .*\n|^\n(?=    ))+", section.partition(label)[2], re.MULTILINE)
    assert block is not None, (heading, label)
    return dedent(block[0])


@pytest.fixture
def member(committed: Caller) -> User:
    """Return the admin of an organization whose rows the server's threads see."""
    committed.sql("CREATE TABLE items (id int, name text)")
    home = Organization.objects.get(pk=committed.scope.organization_id)
    return cast.member(home, "alice@example.com")


def test_the_recipes_run(member: User, live_server: LiveServer, tmp_path: Path) -> None:
    token = cast.signed_in(member).access_token
    (tmp_path / "items.csv").write_text("id,name\n1,first\n2,second\n")

    def run(code: str, *command: str) -> str:
        done = subprocess.run(
            [*command, code.replace(PRINTED, live_server.url)],
            cwd=tmp_path,
            env=os.environ | {"ZONAL_TOKEN": token},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    imported = run(recipe("Import", "insert."), "bash", "-c")
    assert '"row_count":2' in imported
    assert run(recipe("Streams", "With curl:"), "bash", "-c") == "id,name\n1,first\n2,second\n"
    python = run(recipe("Streams", "In Python:"), sys.executable, "-c")
    assert python == "[1, 'first']\n[2, 'second']\n"
    node = shutil.which("node")
    if node is not None:
        script = run(recipe("Streams", "In JavaScript:"), node, "--input-type=module", "-e")
        assert script == '[1,"first"]\n[2,"second"]\n'
