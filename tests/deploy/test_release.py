"""The release's number, wherever it is written, and the web process of a platform's router."""

import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

from common.version import VERSION
from tests.deploy.test_units import processes
from tests.deploy.tools import DEPLOY
from tests.ports import free_port
from tests.waiting import wait_until


def test_project_and_image_have_the_version_of_the_code() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    image = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^LABEL org\.opencontainers\.image\.version=(.*)$", image, re.MULTILINE) == [
        VERSION
    ]
    assert re.findall(r"^ENV IMAGE_VERSION=(.*)$", image, re.MULTILINE) == [VERSION]


def test_web_of_the_procfile_listens_on_every_address_at_the_port_of_a_router(
    tmp_path: Path,
) -> None:
    """As runners of Procfiles start it: by a shell, with PORT. Its application is a small one."""
    port, command = free_port(), processes()["web"]
    command = command.replace("python ", f"{sys.executable} ", 1)
    small = "tests.platform_site.web_server.small_app"
    command = command.replace("platform_site.gunicorn", small, 1)
    command = command.replace("platform_site.wsgi", f"{small}:application", 1)
    environment = {name: value for name, value in os.environ.items() if name != "ZBIND"}
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {command}"], env=environment | {"PORT": str(port)}
    )

    def is_reached() -> bool:
        # Every address of 127.0.0.0/8 is this machine's.
        with closing(socket.socket()) as client:
            return client.connect_ex(("127.0.0.2", port)) == 0

    try:
        wait_until(is_reached)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
