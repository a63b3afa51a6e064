"""The compose file, by its own check, and the secrets that it reads."""

import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography.fernet import Fernet

from common.settings.env import Env
from organizations import conf as organizations
from sqlgateway.hardening.cluster import version_complaint
from tests.deploy.tools import DEPLOY, NAMES, program, run

FILE = DEPLOY / "compose.yaml"
# An operator's own: a mail provider, the certificates of a host name, a registered node.
OF_OPERATOR = {
    "mail_url",
    "backup_secret",
    "brain_cert",
    "brain_key",
    "node_secret",
    "node_cert",
    "node_key",
}


def compose() -> dict[str, Any]:
    """Return the file with its anchors resolved."""
    read: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return read


def ours() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the services of the image."""
    yield from ((name, row) for name, row in compose()["services"].items() if "build" in row)


def test_compose_accepts_the_file_and_passes_any_setting_on(tmp_path: Path) -> None:
    """From the two files that the script makes: no line of compose.yaml is to be added."""
    tool = program("docker-compose", package="docker-compose")
    for name in ("compose.yaml", "make-secrets.sh"):
        shutil.copy(DEPLOY / name, tmp_path / name)
    assert run("sh", tmp_path / "make-secrets.sh").returncode == 0
    assert {each.name for each in tmp_path.glob("*.env")} == {"platform.env", "brain.env"}
    (tmp_path / "platform.env").write_text("GOOGLE_CLIENT_ID=ours\nZBACKUP_URL=s3://b\n")
    (tmp_path / "brain.env").write_text("ZCACHE_REPLICAS=3\n")
    asked = (tool, "-f", tmp_path / "compose.yaml", "--profile", "*", "config")
    seen = run(*asked, environ=NAMES)
    assert (seen.returncode, seen.stderr) == (0, "")
    services = yaml.safe_load(seen.stdout)["services"]
    for name in ("web", "worker", "migrate", "backup"):
        given = services[name]["environment"]
        assert (given["GOOGLE_CLIENT_ID"], given["ZBACKUP_URL"]) == ("ours", "s3://b"), name
    assert str(services["brain"]["environment"]["ZCACHE_REPLICAS"]) == "3"
    # Of providers' secrets a brain needs none.
    assert "GOOGLE_CLIENT_ID" not in services["brain"]["environment"]


def test_compose_names_what_an_operator_has_left_out() -> None:
    variables = set(re.findall(r"\$\{(\w+)", FILE.read_text()))
    asked_for = set(re.findall(r"\$\{(\w+):\?[^}]+\}", FILE.read_text()))
    with_default = set(re.findall(r"\$\{(\w+):-[^}]*\}", FILE.read_text()))
    assert asked_for == set(NAMES)
    assert variables == asked_for | with_default


def test_every_process_has_a_health_check_but_those_that_end() -> None:
    services = compose()["services"]
    unchecked = {name for name, row in services.items() if "healthcheck" not in row}
    # The image's own.
    assert unchecked == {"web"}
    for ending in ("migrate", "backup"):
        assert services[ending]["healthcheck"] == {"disable": True}


def test_the_brain_has_the_names_at_which_it_is_reached() -> None:
    services = compose()["services"]
    names = services["brain"]["environment"]["ZBRAIN_S3_DOMAINS"].split(",")
    public = services["web"]["environment"]["ZCACHE_BRAIN_S3_URL"].removeprefix("https://")
    assert names == [public, "brain"]


def test_the_servers_have_no_known_holes_and_the_image_can_dump_them() -> None:
    """One with known holes is refused in production, and so is an older server's pg_dump."""
    majors = set()
    for name in ("control", "tenants"):
        version = re.fullmatch(r"postgres:(\d+)\.(\d+)-\w+", compose()["services"][name]["image"])
        assert version is not None
        major, minor = map(int, version.groups())
        assert version_complaint(major * 10000 + minor) is None
        majors.add(major)
    image = (DEPLOY / "Dockerfile").read_text()
    (client,) = set(re.findall(r"postgresql-client-(\d+)", image))
    assert int(client) >= max(majors)
    assert f"ZPG_BINDIR=/usr/lib/postgresql/{client}/bin" in image


def test_a_backup_reads_the_objects_of_the_brain() -> None:
    services = compose()["services"]
    assert services["backup"]["volumes"] == services["brain"]["volumes"]
    folders = {
        services[name]["environment"].get("ZDATA_DIR", "/data") for name in ("brain", "backup")
    }
    assert folders == {"/data"}
    assert set(services["web"]["secrets"]) < set(services["backup"]["secrets"])


def mounts(name: str) -> dict[str, str]:
    """Return the folders of a service's volumes, and the volume of each."""
    rows = (row.split(":") for row in compose()["services"][name].get("volumes", ()))
    return {row[1]: row[0] for row in rows}


def test_the_web_server_hands_out_the_exports_that_the_task_worker_writes() -> None:
    """Their file system is read-only, and neither container sees the other's."""
    (data,) = re.findall(r"ZDATA_DIR=(\S+)", (DEPLOY / "Dockerfile").read_text())
    given = Env({})
    folder = organizations.read(given, data_dir=Path(data)).export_dir
    services = compose()["services"]
    for name in ("web", "worker"):
        assert not {"ZEXPORT_DIR", "ZDATA_DIR"} & set(services[name]["environment"])
        assert mounts(name)[str(folder)] == "exports", name


def test_the_user_of_the_image_owns_every_volume() -> None:
    """A new volume has the owner of the image's folder, and root's where the image has none."""
    image = (DEPLOY / "Dockerfile").read_text()
    (made,) = re.findall(r"install --directory --owner zonal --mode 0700 (.+)", image)
    for name, _ in ours():
        assert set(mounts(name)) <= set(made.split()), name
        assert set(mounts(name).values()) <= set(compose()["volumes"]), name


def test_every_process_of_the_image_is_contained() -> None:
    for name, row in ours():
        assert row["cap_drop"] == ["ALL"], name
        assert row["read_only"], name
        assert row["security_opt"] == ["no-new-privileges:true"], name
        assert "user" not in row, name


def test_only_the_proxy_and_the_ports_of_nodes_are_reachable() -> None:
    ports = {name: row["ports"] for name, row in compose()["services"].items() if "ports" in row}
    assert ports == {
        "brain": ["8083:8083"],
        "cacheworker": ["9100:9100"],
        "proxy": ["80:80", "443:443", "443:443/udp"],
    }


def test_no_secret_is_in_the_environment_of_a_process() -> None:
    for name, row in compose()["services"].items():
        for variable in row.get("environment", {}):
            is_secret = any(word in variable for word in ("SECRET", "PASSWORD", "KEY", "_URL_"))
            is_file = variable.endswith("_FILE") or variable == "ZBRAIN_TLS_KEY"
            assert is_file or not is_secret, (name, variable)


def test_secrets_and_settings_are_ignored_by_git() -> None:
    files = [row["file"] for row in compose()["secrets"].values()]
    assert all(path.startswith("./secrets/") for path in files)
    ignored = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    assert {"/deploy/secrets/", "/deploy/*.env"} <= {*ignored}


def test_the_script_makes_every_secret_that_is_random_and_keeps_it(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    first = run("sh", DEPLOY / "make-secrets.sh", folder)
    assert (first.returncode, first.stderr) == (0, "")
    made = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(made) == set(compose()["secrets"]) - OF_OPERATOR
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    Fernet(made["secret_keys"])
    assert len(set(made.values())) == len(made)
    assert min(len(value) for value in made.values()) >= 32
    for url, host in (("database_url", "control"), ("sql_cluster_url", "tenants")):
        address = urlsplit(made[url])
        assert (address.hostname, address.password) == (host, made[f"{host}_password"])
        assert host in compose()["services"]

    assert run("sh", DEPLOY / "make-secrets.sh", folder).returncode == 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == made
