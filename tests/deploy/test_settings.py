"""The settings that are shipped leave nothing for `doctor` but what an operator has yet to do."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.test_compose import compose
from tests.deploy.test_units import unit
from tests.deploy.tools import DEPLOY, NAMES, run
from tests.edgecache.databases import ROOT, new_database

pytestmark = pytest.mark.slow

IMAGE = {"PRODUCTION": "true", "ZDATA_DIR": "/data", "ZBIND": "0.0.0.0:8000"}
# Subjects that wait for an operator, or for a process that this test does not run.
YET_TO_DO = {
    "backups": "ZBACKUP_URL",
    "mail": "ZMAIL_URL",
    "tls": "ZPUBLIC_URL",
    "queue": "procrastinate worker",
    "cache": "edgecache.brain",
}
SUBSTITUTED = re.compile(r"\$\{(\w+)(?::\?[^}]*|:-([^}]*))?\}")


@pytest.fixture
def database() -> Iterator[str]:
    """Return the URL of a migrated control database."""
    with new_database() as url:
        migrate = [sys.executable, "manage.py", "migrate", "-v0"]
        subprocess.run(migrate, cwd=ROOT, check=True, env=os.environ | {"DATABASE_URL": url})
        yield url


def secrets(folder: Path) -> Path:
    """Return a folder with the secrets of `make-secrets.sh` and an operator's own."""
    made = folder / "secrets"
    assert run("sh", DEPLOY / "make-secrets.sh", made).returncode == 0
    (made / "mail_url").write_text("smtp://zonal:password@mail.example.com")
    return made


def of_compose(folder: Path) -> dict[str, str]:
    """Return the settings of the services that are processes of the platform."""
    environment: dict[str, str] = compose()["x-zonal"]["environment"]
    filled = {
        name: SUBSTITUTED.sub(lambda found: NAMES.get(found[1], found[2] or ""), value)
        for name, value in environment.items()
    }
    made = secrets(folder)
    return IMAGE | {
        name: value.replace("/run/secrets", str(made)) for name, value in filled.items()
    }


def of_units(folder: Path) -> dict[str, str]:
    """Return the settings of the units, and the platform.env of docs/running.md."""
    words = unit("zonal-web.service")["Environment"].split()
    page = (ROOT / "docs/running.md").read_text()
    [block] = re.findall(r"[^>]>/etc/zonal/platform\.env <<'END'\n(.*?)\n +END", page, re.DOTALL)
    made = secrets(folder)
    lines = block.replace("/etc/zonal/secrets", str(made)).replace("/srv/zonal", str(folder))
    return dict(line.strip().split("=", 1) for line in [*words, *lines.splitlines()])


@pytest.mark.parametrize("settings_of", [of_compose, of_units])
def test_the_shipped_settings_have_no_finding(
    settings_of: type, tmp_path: Path, database: str
) -> None:
    away = {"DATABASE_URL_FILE": "", "ZSQL_CLUSTER_URL_FILE": "", "DATABASE_URL": database}
    away["ZSQL_CLUSTER_URL"] = os.environ["ZSQL_CLUSTER_URL"]
    given = settings_of(tmp_path) | away | {"ZDATA_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    check = (sys.executable, ROOT / "manage.py", "check", "--deploy", "--fail-level", "WARNING")
    checked = run(*check, environ=given)
    assert (checked.returncode, "no issues" in checked.stdout) == (0, True), checked.stderr
    doctor = run(sys.executable, ROOT / "manage.py", "doctor", "--json", environ=given)
    found = json.loads(doctor.stdout)
    for one in found.get("error", found)["findings"]:
        # Which release of PostgreSQL the tests run on is no setting.
        is_old = re.search("closes known holes|known security holes", str(one))
        if one["level"] in {"ok", "skipped"} or is_old:
            continue
        assert YET_TO_DO[one["subject"]] in one["advice"], one
