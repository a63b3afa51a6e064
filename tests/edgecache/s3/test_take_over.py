"""The script that gives nginx its configuration, with an nginx that says what it is told to."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "deploy" / "nginx" / "take-over"


class Site:
    """A machine with an nginx: it takes what does not say ``bad``, and notes its reloads."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.conf = folder, folder / "zonal.conf"
        self.reloads = folder / "reloads"
        nginx = folder / "nginx"
        nginx.write_text(f"#!/bin/sh\n! grep -q bad {self.conf}\n")
        nginx.chmod(0o755)

    def take_over(self, text: str) -> int:
        """Offer a configuration; give the script's exit code."""
        new = self.folder / "new"
        new.write_text(text)
        environment = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "ZONAL_NGINX_CONF": str(self.conf),
            "ZONAL_NGINX_RELOAD": f"tee -a {self.reloads}",
        }
        done = subprocess.run(
            [SCRIPT, new], env=environment, input=b"x", capture_output=True, check=False, timeout=20
        )
        return done.returncode

    @property
    def reloaded(self) -> int:
        """Say how often nginx was reloaded."""
        return len(self.reloads.read_bytes()) if self.reloads.exists() else 0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Give a machine without a configuration."""
    return Site(tmp_path)


def test_a_configuration_that_changed_is_taken_once(site: Site) -> None:
    for text in ("one", "one", "two"):
        assert site.take_over(text) == 0
        assert site.conf.read_text() == text
    assert site.reloaded == 2
    assert site.conf.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["bad", ""])
def test_what_nginx_does_not_take_is_undone(site: Site, text: str) -> None:
    assert site.take_over(text) == 1
    assert not site.conf.exists()
    site.take_over("good")
    assert site.take_over(text) == 1
    assert (site.conf.read_text(), site.reloaded) == ("good", 1)
