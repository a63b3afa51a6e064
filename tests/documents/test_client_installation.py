"""The Python client is installed by the commands of the pages, where the system's pip refuses."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT

pytestmark = pytest.mark.slow

PAGES = ("docs/tutorial.md", "docs/clients.md", "clients/python/README.md")
BLOCK = re.compile(r"^    (.*venv.*)\n    (pip install .*)\n", re.MULTILINE)


def test_the_client_is_installed_beside_the_system_s_packages(tmp_path: Path) -> None:
    """Debian's and Ubuntu's pip installs into environments alone (PEP 668)."""
    found = {BLOCK.search((ROOT / page).read_text()) for page in PAGES}
    assert None not in found
    [script] = {"\n".join(each.groups()) for each in found if each}
    left_out = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "clients/python", tmp_path / "clients/python", ignore=left_out)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{script}\nzonal --version"],
        cwd=tmp_path,
        env=os.environ | {"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "zonal" in done.stdout
