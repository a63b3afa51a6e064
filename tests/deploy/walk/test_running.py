"""An operator's first days, by the commands of docs/running.md as they are printed.

What differs: apt-get does not run (its packages are compared with .ci/run's), and Caddy has an
authority of its own, since no other is reached. small_systemd.py runs the units in systemd's place.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.walk.machine import Machine, new_machine
from tests.documents.blocks import BLOCK, ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PAGE: Final = "docs/running.md"
PASSWORD: Final = "correct horse battery 9"
# What depends on the world outside: a mail provider, and cache workers of others.
OUTSIDE: Final = {"mail"}
# The folder of another machine, which has the private key until it is needed.
ELSEWHERE: Final = "/srv/elsewhere"
LOSS: Final = """
systemctl stop zonal-web zonal-worker zonal-brain.socket zonal-brain@1 zonal-brain@2
pg_dropcluster --stop 15 control
pg_dropcluster --stop 15 tenants
rm -rf /var/lib/zonal /srv/zonal /opt/zonal
install -d -o zonal -g zonal -m 0700 /var/lib/zonal /srv/zonal /srv/zonal/objects /srv/zonal/exports
ln -s /opt/releases/0.2.0 /opt/zonal
"""


def sections() -> dict[str, list[str]]:
    """Return the commands of the page by section."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", (ROOT / PAGE).read_text(), flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        rows = (each["indented"] for each in BLOCK.finditer(text))
        found[title] = [re.sub(r"^    ", "", row, flags=re.MULTILINE).strip("\n") for row in rows]
    return found


def test_a_platform_is_installed_upgraded_lost_and_restored_by_the_page(tmp_path: Path) -> None:
    page = sections()
    with new_machine(tmp_path) as machine:
        _install(machine, page)
        alice = _use(machine)
        _back_up(machine, page)
        _upgrade(machine, page)
        _compare(machine, alice)
        machine.paste("systemctl start zonal-backup")
        machine.paste(LOSS)
        for block in page["PostgreSQL"]:
            machine.paste(block)
        machine.paste(f"mv {ELSEWHERE}/zonal-backup.key .")
        for block in page["The machine is lost"]:
            machine.paste(_with_doctor(block))
        _check_doctor(machine)
        _compare(machine, alice)
        backups = json.loads(machine.paste("zonal-manage backup --list --json"))["backups"]
        assert [each["state"] for each in backups] == ["complete"] * len(backups)
        assert len(backups) == 4


# A unit as those of deploy/systemd: what they may not write, it may not.
PROBE: Final = """
install -d -o zonal /srv/other
for folder in /srv/zonal /srv/other; do
  cat >/etc/systemd/system/zonal-probe.service <<END
[Service]
Type=oneshot
User=zonal
ProtectSystem=strict
ExecStart=/usr/bin/touch $folder/probe
END
  systemctl start zonal-probe 2>/dev/null || true
done
rm /etc/systemd/system/zonal-probe.service
ls /srv/zonal/probe /srv/other
"""


def _install(machine: Machine, page: dict[str, list[str]]) -> None:
    packages = (ROOT / ".ci/run").read_text()
    for title in ("The machine", "The code", "Secrets", "PostgreSQL", "Settings", "The services"):
        for block in page[title]:
            machine.paste(_without_packages(block, packages))
    assert machine.paste(PROBE).split() == ["/srv/zonal/probe", "/srv/other:"]
    machine.paste("systemd-analyze verify --man=no /etc/systemd/system/zonal-*.service")
    [proxy] = page["The proxy"]
    machine.paste(proxy.replace("systemctl daemon-reload", LOCAL_AUTHORITY))
    wait_until(lambda: "made" in machine.paste(COPY_AUTHORITY), timeout_s=120)
    machine.trust("/etc/ssl/certs/caddy.pem")
    wait_until(
        lambda: "ok" in machine.paste("curl -s https://app.example.com/healthz || true"),
        timeout_s=120,
    )
    [first] = page["The first member of staff"]
    said = machine.paste(_with_doctor(first), stdin=f"{PASSWORD}\n{PASSWORD}\n")
    assert '"status": "ok"' in said


COPY_AUTHORITY: Final = """
cd /var/lib/caddy/.local/share/caddy/pki/authorities/local &&
  install -m 0644 root.crt /etc/ssl/certs/caddy.pem && echo made || true
"""
LOCAL_AUTHORITY: Final = """
sed -i '0,/^{/s//{\\n\\tlocal_certs\\n\\tskip_install_trust/' /etc/caddy/Caddyfile
systemctl daemon-reload
"""


def _without_packages(block: str, known: str) -> str:
    """Return a block without apt-get; its packages must be those that CI installs."""
    kept = []
    for line in block.splitlines():
        if line.startswith("apt-get install"):
            names = [word for word in line.split()[2:] if not word.startswith("-")]
            assert all(re.search(rf"\b{re.escape(name)}\b", known) for name in names), names
        elif not line.startswith("apt-get"):
            kept.append(line)
    return "\n".join(kept)


def _with_doctor(block: str) -> str:
    """Return a block that goes on after doctor: mail.example.com is not reached from here."""
    return block.replace("zonal-manage doctor", "zonal-manage doctor || test $? = 1")


def _check_doctor(machine: Machine) -> None:
    said = machine.paste("zonal-manage doctor --json || test $? = 1")
    report = json.loads(said)
    findings = report.get("error", report)["findings"]
    failed = [each for each in findings if each["level"] == "failed"]
    assert {each["subject"] for each in failed} <= OUTSIDE, failed


def _use(machine: Machine) -> dict[str, str]:
    """Sign up, write a row and an object; return what reads them again."""
    body = {"email": "alice@example.com", "password": PASSWORD}
    token = machine.call("POST", "/v1/auth/signup", body)["access_token"]
    machine.call("POST", "/v1/sql", {"query": "CREATE TABLE notes (body text)"}, token)
    machine.call("POST", "/v1/sql", {"query": "INSERT INTO notes VALUES ('kept')"}, token)
    keys = _access_key(machine, token)
    machine.paste(f"{_curl(keys)} -X PUT {OBJECTS}/docs")
    machine.paste(f"{_curl(keys)} -X PUT -d 'an object' {OBJECTS}/docs/note")
    return body


OBJECTS: Final = "https://objects.example.com"


def _access_key(machine: Machine, token: str) -> Any:
    return machine.call("POST", "/v1/cache/access-keys", {"label": "walk"}, token)


def _curl(keys: Any) -> str:
    user = f"{keys['access_key_id']}:{keys['secret_access_key']}"
    signed = f"--aws-sigv4 aws:amz:us-east-1:s3 --user '{user}'"
    return f"curl -sS --fail-with-body {signed} -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD'"


def _compare(machine: Machine, alice: dict[str, str]) -> None:
    """Sign in; the row and the object are there."""
    token = machine.call("POST", "/v1/auth/login", alice)["access_token"]
    answer = machine.call("POST", "/v1/sql", {"query": "SELECT body FROM notes"}, token)
    assert answer["rows"] == [{"body": "kept"}]
    # Access keys of before are void after a restore.
    keys = _access_key(machine, token)
    assert machine.paste(f"{_curl(keys)} {OBJECTS}/docs/note") == "an object"
    assert '"status": "ok"' in machine.paste("curl -sS https://app.example.com/readyz")


def _back_up(machine: Machine, page: dict[str, list[str]]) -> None:
    elsewhere, settings, backup = page["Backups"]
    machine.paste(f"mkdir {ELSEWHERE} && cd {ELSEWHERE}\n{elsewhere}")
    public = machine.paste(f"age-keygen -y {ELSEWHERE}/zonal-backup.key").strip()
    machine.paste(settings.replace("age1…", public))
    before = machine.paste("cat /etc/zonal/platform.env")
    machine.paste(settings.replace("age1…", public))
    assert machine.paste("cat /etc/zonal/platform.env") == before
    machine.paste(backup)
    _check_doctor(machine)


def _upgrade(machine: Machine, page: dict[str, list[str]]) -> None:
    [block] = page["An upgrade"]
    before, link, after = block.partition("ln -sfn")
    # A service that starts again here has the old code: the new tables are there already.
    said = machine.paste(before)
    assert "No migrations to apply" in said
    assert machine.paste("readlink /opt/zonal").strip() == "/opt/releases/0.1.0"
    machine.paste(_with_doctor(link + after))
    for process in ("procrastinate worker", "platform_site.wsgi", "edgecache.brain"):
        folder = machine.paste(f"readlink /proc/$(pgrep --oldest -f '{process}')/cwd")
        assert folder.strip() == "/opt/releases/0.2.0", process
    _check_doctor(machine)
