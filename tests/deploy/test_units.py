"""Every process has a systemd unit, which systemd accepts and which contains it."""

import configparser
import re
import shutil
from pathlib import Path

import pytest

from common.machine.folders import SYSTEM_ROOT
from common.settings.env import Env
from edgecache.brain.conf import brain
from organizations import conf as organizations
from tests.deploy.tools import DEPLOY, program, run

UNITS = {
    "release": "zonal-migrate.service",
    "web": "zonal-web.service",
    "worker": "zonal-worker.service",
    "brain": "zonal-brain@.service",
    "cacheworker": "zonal-cache-worker@.service",
}
# Of 10, where 10 is a service with everything that root has.
EXPOSURE_LIMIT = 1.5


def processes() -> dict[str, str]:
    """Return the commands of the Procfile by process."""
    lines = (DEPLOY / "Procfile").read_text().splitlines()
    return {name: command.strip() for name, _, command in (line.partition(":") for line in lines)}


def unit(name: str) -> configparser.SectionProxy:
    """Return the [Service] section of a unit."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names are case-sensitive
    parser.read_string((DEPLOY / "systemd" / name).read_text().replace("\\\n", " "))
    return parser["Service"]


def services() -> list[str]:
    return sorted(path.name for path in (DEPLOY / "systemd").glob("*.service"))


def test_every_process_has_a_systemd_unit() -> None:
    assert set(processes()) == set(UNITS)


@pytest.mark.parametrize("process", UNITS)
def test_a_unit_starts_the_command_of_the_procfile(process: str) -> None:
    command = re.sub(r"/opt/zonal/\.venv/bin/", "", unit(UNITS[process])["ExecStart"])
    wanted = processes()[process]
    # Paths and names of a node are the unit's own.
    assert " ".join(command.split()).startswith(wanted.split(" --")[0])


@pytest.mark.parametrize("name", services())
def test_a_unit_runs_without_privileges(name: str) -> None:
    service = unit(name)
    assert service["User"] == "zonal"
    assert service["NoNewPrivileges"] == "true"
    assert service["ProtectSystem"] == "strict"
    assert service["UMask"] == "0077"


@pytest.mark.parametrize("process", ["web", "worker"])
def test_a_unit_may_write_the_exports_of_organizations(process: str) -> None:
    """The rest of the system is read-only; both units have one folder, and one user."""
    service = unit(UNITS[process])
    (data,) = re.findall(r"ZDATA_DIR=(\S+)", service["Environment"])
    assert data == f"/var/lib/{service['StateDirectory']}"
    given = Env({})
    folder = organizations.read(given, data_dir=Path(data)).export_dir
    assert Path(folder).is_relative_to(data)


@pytest.mark.parametrize("name", services())
def test_make_run_by_root_keeps_nothing_in_a_folder_of_the_units(name: str) -> None:
    """A StateDirectory: systemd gives all of it to the user of the unit."""
    state = Path("/var/lib") / unit(name)["StateDirectory"].split("/")[0]
    assert not state.is_relative_to(SYSTEM_ROOT)
    assert not SYSTEM_ROOT.is_relative_to(state)


def test_a_reload_of_web_hands_over_and_systemd_follows_the_new_process() -> None:
    service = unit(UNITS["web"])
    assert service["ExecReload"] == "/bin/kill -USR2 $MAINPID"
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "all")


def test_brains_have_the_sockets_of_the_ports_that_are_their_defaults() -> None:
    text = (DEPLOY / "systemd" / "zonal-brain.socket").read_text()
    listens = re.findall(r"^ListenStream=(\S+)$", text, re.MULTILINE)
    chosen = brain.read(Env({}), data_dir=Path(), database_url="", is_production=True)
    listeners = (chosen.internal, chosen.s3, chosen.workers)
    assert listens == [f"{row.address}:{row.port}" for row in listeners]
    service = unit(UNITS["brain"])
    assert (service["Type"], service["Sockets"]) == ("notify", "zonal-brain.socket")


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    systemd = program("systemd-analyze", package="systemd")
    here = shutil.which("true")
    assert here
    for path in sorted((DEPLOY / "systemd").iterdir()):
        # systemd looks for the programs, which are elsewhere on this machine.
        text = re.sub(r"/opt/zonal/\.venv/bin/\w+", here, path.read_text())
        (tmp_path / path.name).write_text(text)
    seen = run(systemd, "verify", "--man=no", *sorted(tmp_path.iterdir()))
    about_ours = [line for line in seen.stderr.splitlines() if "zonal" in line]
    assert (seen.returncode, about_ours) == (0, [])


@pytest.mark.parametrize("name", services())
def test_a_unit_is_hardly_exposed(name: str) -> None:
    systemd = program("systemd-analyze", package="systemd")
    path = DEPLOY / "systemd" / name
    seen = run(systemd, "security", "--offline=true", "--no-pager", path)
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", seen.stdout)
    assert level, seen.stderr
    assert float(level[1]) <= EXPOSURE_LIMIT
