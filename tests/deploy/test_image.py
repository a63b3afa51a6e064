"""The image: what is in its layers, who runs it, how its health is asked."""

import re
import subprocess
import tomllib

from tests.deploy.ignore_rules import rules, taken
from tests.deploy.tools import DEPLOY
from tests.packages import PACKAGES

ROOT = DEPLOY.parent
SECRETS = (
    ".env",
    ".env.production",
    ".git/config",
    ".netrc",
    ".ssh/id_ed25519",
    ".venv/bin/python",
    "accounts/.env",
    "accounts/production.env",
    "backup.dump",
    "deploy/secrets/secret_key",
    "deploy/secrets/brain_key",
    "edgecache/brain/tls.key",
    "edgecache/server.pem",
    "id_rsa",
    "node.secret",
    "platform_site/secrets/jwt",
    "server.key",
    "tests/keys/server.key",
    "var/control/base/1/1259",
    "var/runtime.env",
)
PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|AGE-SECRET-KEY-1[0-9A-Z]{20}")


def in_image(paths: list[str]) -> set[str]:
    return set(taken(paths, rules((ROOT / ".dockerignore").read_text())))


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for path in listed.stdout.split("\0") if path]


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions and their arguments."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def test_secrets_data_and_history_stay_out_of_the_image() -> None:
    assert in_image(list(SECRETS)) == set()


def test_nothing_of_this_checkout_that_git_does_not_know_is_in_the_image() -> None:
    here = [
        str(path.relative_to(ROOT))
        for top in {path.split("/")[0] for path in tracked()}
        for path in [ROOT / top, *(ROOT / top).rglob("*")]
        if path.is_file()
    ]
    new = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    assert in_image(here) <= {*tracked(), *new}


def test_no_file_of_the_image_holds_a_private_key() -> None:
    holders = [
        path for path in in_image(tracked()) if PRIVATE_KEY.search((ROOT / path).read_bytes())
    ]
    assert holders == []


def test_everything_that_runs_is_in_the_image() -> None:
    folders = tuple(f"{package}/" for package in PACKAGES)
    needed = {
        path for path in tracked() if path.startswith((*folders, "templates/")) and "/." not in path
    }
    assert len(folders) > 5
    needed |= {"manage.py", "requirements/image.txt", "requirements/worker.txt", "deploy/probe.py"}
    assert needed <= in_image(tracked())


def pins(name: str) -> dict[str, str]:
    """Return the versions that a file of requirements pins."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", text, re.MULTILINE))


def test_the_image_has_what_every_setting_needs() -> None:
    """ZTRACES_URL is a setting, so the image has the packages of traces as well."""
    (installed,) = [argument for name, argument in instructions() if "--require-hashes" in argument]
    assert installed.endswith("-r requirements/image.txt")
    base, image = pins("base"), pins("image")
    assert base.items() <= image.items()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {*extras["traces"]} <= {*image}
    # One version of each serves the platform, its image and its tests.
    assert image.items() <= pins("dev").items()


def test_the_image_runs_as_a_user_without_rights_from_a_pinned_base() -> None:
    given = instructions()
    (base,) = [argument for name, argument in given if name == "FROM"]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)
    *_, user = [argument for name, argument in given if name == "USER"]
    last_run = max(index for index, (name, _) in enumerate(given) if name in {"RUN", "COPY"})
    assert user == "zonal"
    assert given.index(("USER", user)) > last_run
    assert not [argument for name, argument in given if name == "ADD"]


def test_the_image_installs_only_what_is_pinned_by_a_hash() -> None:
    installs = [argument for name, argument in instructions() if "pip install" in argument]
    assert installs
    assert all("--require-hashes" in argument for argument in installs)


def test_the_image_asks_its_own_health() -> None:
    (check,) = [argument for name, argument in instructions() if name == "HEALTHCHECK"]
    assert "deploy/probe.py" in check
    assert "/healthz" in check
