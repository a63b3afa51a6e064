"""One platform with a brain and workers, and a terminal in which readers paste commands."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import requests
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.cast import PASSWORD
from tests.documents.blocks import ROOT
from tests.edgecache.cluster import Cluster
from tests.live_site import over_a_brain

TIMEOUT_S = 120


@dataclass(frozen=True)
class Terminal:
    """A shell in an empty folder beside a running platform."""

    site: str
    objects: str
    folder: Path

    def paste(self, script: str, *, stdin: str = "", **variables: str) -> str:
        """Run commands as they are printed; return their output.

        stdin: what a reader types.
        A command that fails, and a request that is refused, ends the script and the test.
        """
        printed = {"http://127.0.0.1:8000": self.site, "http://127.0.0.1:9000": self.objects}
        for address, real in printed.items():
            script = script.replace(address, real)
        search = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=os.environ | self._variables() | {"PATH": search} | variables,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _variables(self) -> dict[str, str]:
        """Return what finds the platform, and the client that a reader has installed."""
        return {
            "ZONAL": self.site,
            "PYTHONPATH": str(ROOT / "clients" / "python"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }

    def post(self, path: str, body: object, token: str = "") -> Any:
        """Send a request of the test's own preparation."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = requests.post(self.site + path, json=body, headers=headers, timeout=TIMEOUT_S)
        assert answer.ok, answer.text
        return answer.json()

    def sign_up(self, email: str = "reader@example.com") -> str:
        """Return the access token of a new organization's admin."""
        answer = self.post("/v1/auth/signup", {"email": email, "password": PASSWORD})
        return str(answer["access_token"])


@pytest.fixture
def terminal(
    live_server: LiveServer, cluster: Cluster, settings: Settings, tmp_path: Path
) -> Iterator[Terminal]:
    """Return a terminal whose curl fails on refusals, as a reader would see them."""
    programs = tmp_path / "bin"
    programs.mkdir()
    curl = programs / "curl"
    options = r"--fail-with-body --show-error --write-out '\n'"
    curl.write_text(f'#!/bin/sh\nexec {which("curl")} {options} "$@"\n')
    curl.chmod(0o700)
    command = programs / "zonal"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m zonal "$@"\n')
    command.chmod(0o700)
    with over_a_brain(live_server, cluster, settings) as site:
        yield Terminal(site, cluster.url, tmp_path)
