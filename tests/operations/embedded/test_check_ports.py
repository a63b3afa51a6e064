"""The port check before the first installation: without packages, naming the setting."""

import socket
import subprocess
import sys

import pytest

from common.machine.errors import PortTakenError
from operations.embedded.check_ports import check
from tests.operations.embedded.support import PROJECT, environment


@pytest.mark.parametrize("setting", ["PORT", "ZBRAIN_PORT", "ZBRAIN_S3_PORT", "ZBRAIN_WORKER_PORT"])
def test_a_port_in_use_is_refused_with_its_setting(setting: str) -> None:
    environ = {name: str(free()) for name in ("PORT", "ZBRAIN_PORT", "ZBRAIN_S3_PORT")}
    environ["ZBRAIN_WORKER_PORT"] = str(free())
    check(environ)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        environ[setting] = str(other.getsockname()[1])
        with pytest.raises(PortTakenError, match=f"with the setting {setting}"):
            check(environ)


def test_the_check_needs_no_installed_package() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        # -S: without site-packages, as on a machine where nothing is installed yet.
        result = subprocess.run(
            [sys.executable, "-S", "-m", "operations.embedded.check_ports"],
            check=False,
            capture_output=True,
            text=True,
            cwd=PROJECT,
            env=environment(PORT=port),
        )
    assert result.returncode == 1
    assert result.stderr.startswith(f"Port {port} is in use by another program.")
    assert "Traceback" not in result.stderr


def test_make_run_checks_the_ports_before_it_installs() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    assert "\nrun: free-ports $(VENV)/.base" in makefile


def free() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
