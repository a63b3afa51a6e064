"""/opt/zonal is a link to a release's folder: it is moved, and a reload starts the new code."""

import os
import re
import shlex
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.version import VERSION
from tests.deploy.tools import DEPLOY
from tests.processes import has_ended
from tests.waiting import wait_until
from tests.web_process import web_process

pytestmark = pytest.mark.slow

ROOT = DEPLOY.parent
START_S = 120.0


@dataclass(frozen=True)
class Link:
    """The link, and the folders of two releases."""

    path: Path

    def point_at(self, release: str) -> None:
        """Move the link, as `ln -sfn` does."""
        following = self.path.with_name("following")
        following.symlink_to(release)
        following.replace(self.path)

    def unit(self, name: str) -> tuple[list[str], dict[str, str]]:
        """Return a unit's command and its PWD, with this link instead of /opt/zonal."""
        text = (DEPLOY / "systemd" / name).read_text().replace("/opt/zonal", str(self.path))
        (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
        folder = re.findall(r"^Environment=(PWD)=(\S+)$", text, re.MULTILINE)
        return shlex.split(command), dict(folder)


@pytest.fixture
def link(tmp_path: Path) -> Link:
    """Make releases 0.1.0 and 0.2.0, of this code but for the version."""
    for version in ("0.1.0", "0.2.0"):
        folder = tmp_path / version
        (folder / "common").mkdir(parents=True)
        for path in ROOT.iterdir():
            if path.name not in {"common", ".venv", ".git", "var"}:
                (folder / path.name).symlink_to(path)
        for path in (ROOT / "common").iterdir():
            if path.name not in {"version.py", "__pycache__"}:
                (folder / "common" / path.name).symlink_to(path)
        code = (ROOT / "common" / "version.py").read_text()
        (folder / "common" / "version.py").write_text(code.replace(f'"{VERSION}"', f'"{version}"'))
        (folder / ".venv").symlink_to(sys.prefix)
    made = Link(tmp_path / "zonal")
    made.path.symlink_to("0.1.0")
    return made


@pytest.mark.django_db(transaction=True)
def test_a_reload_of_web_starts_the_code_that_the_link_names(link: Link, tmp_path: Path) -> None:
    command, variables = link.unit("zonal-web.service")
    with web_process(tmp_path, link.path, command, **variables) as web:
        assert web.ask("GET", "/readyz")["version"] == "0.1.0"

        link.point_at("0.2.0")
        web.process.send_signal(signal.SIGUSR2)
        successor = web.main_pid()
        web.process.wait(START_S)
        try:
            assert web.ask("GET", "/readyz")["version"] == "0.2.0"
        finally:
            os.kill(successor, signal.SIGTERM)
            wait_until(lambda: has_ended(successor))
