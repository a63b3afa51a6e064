"""The package as it is installed, and for the oldest Python."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import zonal

CLIENT = Path(__file__).resolve().parents[3] / "clients/python"
MODULES = sorted((CLIENT / "zonal").rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(CLIENT)))
def test_every_module_is_python_3_9(module: Path) -> None:
    ast.parse(module.read_text(), feature_version=(3, 9))


def test_the_package_installs_with_its_types(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    build = "from flit_core import buildapi; import sys; print(buildapi.build_wheel(sys.argv[1]))"
    wheel = str(tmp_path / run("-c", build, str(tmp_path)))
    run("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "into"), wheel)
    assert (tmp_path / "into/zonal/py.typed").exists()
    use = "import sys; sys.path[0] = sys.argv[1]; import zonal; print(zonal.Client.__module__)"
    assert run("-c", use, str(tmp_path / "into")) == "zonal._sync.client"


def test_the_command_without_its_extra_names_it() -> None:
    script = (
        "import sys; sys.path[0] = '.'; sys.modules |= {'click': None, 'rich': None};"
        "import zonal; assert zonal.Client;"
        "import zonal.cli.main as m; sys.exit(m.main(['whoami']))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "zonal: click, rich are missing: run `pip install 'zonal[cli]'`.\n"


def test_every_public_name_is_there_and_no_other() -> None:
    assert [name for name in zonal.__all__ if not hasattr(zonal, name)] == []
    assert not hasattr(zonal, "import_csv")
