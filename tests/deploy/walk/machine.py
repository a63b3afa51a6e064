"""A machine of its own for a test: private folders, network and processes, without a container."""

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.tools import program
from tests.documents.blocks import ROOT

WALK = Path(__file__).parent
NAMESPACES = ("--mount", "--net", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child")
NEEDED = {"pg_createcluster": "postgresql-15", "caddy": "caddy", "age": "age", "curl": "curl"}
TIMEOUT_S = 900


class Machine:
    """A shell of root. folder: where the operator is."""

    def __init__(self, inside: int, folder: Path, programs: Path) -> None:
        self._inside = inside
        self.folder = folder
        self._environment = {
            "PATH": f"{programs}:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HOME": "/root",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(folder / "packages"),
        }

    def trust(self, authority: str) -> None:
        """Have curl and doctor know a certificate's issuer. authority: its PEM file."""
        self._environment |= {"CURL_CA_BUNDLE": authority, "SSL_CERT_FILE": authority}

    def paste(self, script: str, *, stdin: str = "") -> str:
        """Run commands as root; return their output. One that fails ends the test."""
        done = subprocess.run(
            ["nsenter", "-t", str(self._inside), "--mount", "--net", "--pid", "--ipc", "--",
             "bash", "-euo", "pipefail", "-c", f"cd {self.folder}\n{script}"],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def call(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """Send a request through the proxy; return the answer. A refusal fails the test."""
        words = ["curl", "-sS", "--fail-with-body", "-X", method]
        words += ["-H", "Content-Type: application/json"]
        if token:
            words += ["-H", f"Authorization: Bearer {token}"]
        if body is not None:
            words += ["-d", json.dumps(body)]
        said = self.paste(" ".join(map(_quoted, [*words, f"https://app.example.com{path}"])))
        return json.loads(said)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


@contextmanager
def new_machine(folder: Path) -> Iterator[Machine]:
    """Start a machine; everything on it ends with the block. Skips the test for other users."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("only root makes namespaces and mounts")
    for name, package in NEEDED.items():
        program(name, package=package)
    work = folder / "operator"
    work.mkdir()
    for release in ("0.1.0", "0.2.0"):
        pack(work / f"zonal-{release}.tar.gz", release)
    fetch_packages(work / "packages")
    fetch_postgresql(folder / "debian")
    command = ["unshare", *NAMESPACES, "--propagation=private", "/usr/bin/python3"]
    process = subprocess.Popen(
        [*command, str(WALK / "small_systemd.py"), str(folder)], stdout=subprocess.PIPE
    )
    assert process.stdout
    try:
        assert process.stdout.readline() == b"ready\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        yield Machine(int(children.split()[0]), work, folder / "bin")
    finally:
        process.kill()
        process.communicate()


def fetch_packages(folder: Path) -> None:
    """Download what pip installs: the machine has no network but its own."""
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    asked = subprocess.run(["/usr/bin/python3", "-c", version], capture_output=True, check=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes"]
    command += ["--only-binary=:all:", "--python-version", asked.stdout.decode().strip()]
    requirements = ROOT / "requirements/base.txt"
    subprocess.run([*command, "-d", str(folder), "-r", str(requirements)], check=True)


def fetch_postgresql(folder: Path) -> None:
    """Unpack Debian's newest PostgreSQL, where an older one is installed, as apt-get would.

    Production refuses servers with known security holes. small_systemd.py mounts it.
    """
    folder.mkdir()
    names = ("postgresql-15", "postgresql-client-15")
    policy = subprocess.run(["apt-cache", "policy", names[0]], capture_output=True, check=True)
    installed, candidate = re.findall(r"(?:Installed|Candidate): (\S+)", policy.stdout.decode())
    if installed == candidate:
        return
    folder.chmod(0o777)
    subprocess.run(["apt-get", "download", "-qq", *names], cwd=folder, check=True)
    for file in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", file.name, "."], cwd=folder, check=True)


def pack(file: Path, release: str) -> None:
    """Write the archive of a release: this checkout, and the release's name in a file."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    top = Path(f"zonal-{release}")
    mark = file.with_suffix(".mark")
    mark.write_text(release)
    with tarfile.open(file, "w:gz", compresslevel=1) as archive:
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).exists() and not name.startswith("tests/"):
                archive.add(ROOT / name, str(top / name))
        archive.add(mark, str(top / "RELEASE"))
