"""Deployment: every process has a systemd unit, and no secret is in an image."""

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = {
    "web": "zonal-web.service",
    "worker": "zonal-worker.service",
    "brain": "zonal-brain.service",
    "cacheworker": "zonal-cache-worker@.service",
}


def processes() -> dict[str, str]:
    """Return the commands of the Procfile by process, without `release`, which ends."""
    lines = (ROOT / "deploy/Procfile").read_text().splitlines()
    found = {name: command.strip() for name, _, command in (line.partition(":") for line in lines)}
    return {name: command for name, command in found.items() if name != "release"}


def unit(name: str) -> configparser.SectionProxy:
    """Return the [Service] section of a unit."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names are case-sensitive
    text = (ROOT / "deploy/systemd" / name).read_text().replace("\\\n", " ")
    parser.read_string(text)
    return parser["Service"]


def test_every_process_has_a_systemd_unit() -> None:
    assert set(processes()) == set(UNITS)


@pytest.mark.parametrize("process", UNITS)
def test_a_unit_starts_the_command_of_the_procfile(process: str) -> None:
    command = re.sub(r"/opt/zonal/\.venv/bin/", "", unit(UNITS[process])["ExecStart"])
    wanted = processes()[process]
    # Paths and names of a node are the unit's own.
    program = wanted.split(" --")[0]
    assert " ".join(command.split()).startswith(program)


@pytest.mark.parametrize("process", UNITS)
def test_a_unit_runs_without_privileges(process: str) -> None:
    service = unit(UNITS[process])
    assert service["User"] == "zonal"
    assert service["NoNewPrivileges"] == "true"
    assert service["ProtectSystem"] == "strict"
    assert service["UMask"] == "0077"


def test_secrets_data_and_history_stay_out_of_the_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {".git", ".venv", "var", "deploy/secrets"} <= set(ignored)
    # Nothing is brought back in.
    assert not [line for line in ignored if line.startswith("!")]


def test_git_ignores_the_secrets_of_a_deployment() -> None:
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_folder_of_secrets_is_the_one_that_compose_reads() -> None:
    files = re.findall(r"file: (\./[^ }]+)", (ROOT / "deploy/compose.yaml").read_text())
    assert files
    assert all(path.startswith("./secrets/") for path in files)
