"""An older Python is refused in a sentence by whatever is started first."""

import subprocess
import sys

import pytest

from tests.deploy.tools import DEPLOY

# As Python 3.10 would run it: what is newer is missing there.
OLDER = """
import datetime, runpy, sys, typing
sys.version_info = (3, 10, 13, "final", 0)
del typing.Self, datetime.UTC
sys.argv = sys.argv[1:]
if sys.argv[0].endswith(".py"):
    runpy.run_path(sys.argv[0], run_name="__main__")
else:
    runpy.run_module(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("program", ["edgecache.worker", "operations.embedded.check_ports"])
def test_an_older_python_is_refused_in_a_sentence(program: str) -> None:
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'){OLDER}", program]
    ended = subprocess.run(
        command, cwd=DEPLOY.parent, check=False, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert ended.stderr == "Zonal needs Python 3.11 or later; this is 3.10.\n"
