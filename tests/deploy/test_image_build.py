"""The image as it is built: who runs it, how its health is asked, what its layers hold."""

import io
import json
import os
import secrets
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy import image_archive
from tests.deploy.image_archive import LayerFile
from tests.deploy.test_image import PRIVATE_KEY, ROOT, SECRETS, tracked

USER = 10001
# How each builds, and saves what it has built; only Docker's format has a health check.
BUILDERS = {
    "docker": (("build",), ("save", "-o", "{file}", "{tag}")),
    "podman": (("build", "--format", "docker"), ("save", "-o", "{file}", "{tag}")),
    "buildah": (("build", "--format", "docker"), ("push", "{tag}", "docker-archive:{file}")),
}
REMOVE = {"docker": "image rm -f", "podman": "image rm -f", "buildah": "rmi -f"}


def builder() -> str:
    """Return the builder that answers; skip the test without one.

    In CI, too: it takes a registry that has the base image. Debian's `buildah` builds as root with
    BUILDAH_ISOLATION=chroot where there is neither a daemon nor a user namespace. What is in the
    build's context and its instructions is tested in test_image.py everywhere.
    """
    for name in BUILDERS:
        command = shutil.which(name)
        if command and _answers(command):
            return name
    pytest.skip("no builder of images answers: docker, podman or buildah")


def _answers(command: str) -> bool:
    asked = subprocess.run([command, "info"], capture_output=True, check=False)
    return asked.returncode == 0


def has_base(name: str, dockerfile: Path) -> bool:
    """Return whether the image that the Dockerfile begins with is here, or can be fetched."""
    base = dockerfile.read_text().partition("FROM ")[2].split()[0]
    here = subprocess.run([name, "images", "-q", base], capture_output=True, check=False)
    if here.returncode == 0 and here.stdout.strip():
        return True
    return subprocess.run([name, "pull", base], capture_output=True, check=False).returncode == 0


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def checkout(folder: Path, marker: str) -> Path:
    """Return a copy of this checkout in which secrets lie around, each with a marker."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
        (folder / name).chmod((ROOT / name).stat().st_mode & 0o777)
    for name in SECRETS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(marker)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yield the archive of the image, and the marker of the secrets beside its sources."""
    name = builder()
    if not has_base(name, ROOT / "deploy/Dockerfile"):
        pytest.skip("no registry answers that has the base image")
    folder = tmp_path_factory.mktemp("image")
    marker = f"a secret {secrets.token_hex(16)}"
    sources = checkout(folder / "sources", marker)
    tag = f"zonal-test-{os.getpid()}"
    build, save = BUILDERS[name]
    run(name, *build, "-f", str(sources / "deploy/Dockerfile"), "-t", tag, str(sources))
    archive = folder / "image.tar"
    try:
        run(name, *(word.format(file=archive, tag=tag) for word in save))
        yield archive, marker
    finally:
        run(name, *REMOVE[name].split(), tag)


def test_the_built_image_has_no_secret_in_any_layer(built: tuple[Path, str]) -> None:
    archive, marker = built
    assert leaks(image_archive.files(archive), marker) == []
    assert marker not in image_archive.history(archive)


def test_the_built_image_runs_as_its_user_who_owns_its_data(built: tuple[Path, str]) -> None:
    archive, _ = built
    assert image_archive.configuration(archive)["User"] == "zonal"
    found = {each.path: each for each in image_archive.files(archive)}
    assert f"zonal:x:{USER}:".encode() in found["etc/passwd"].data
    for folder in ("data", "data/exports"):
        assert (found[folder].uid, found[folder].mode) == (USER, 0o700)
    assert {each.uid for path, each in found.items() if path.startswith("zonal/")} == {0}


def test_the_built_image_asks_its_own_health(built: tuple[Path, str]) -> None:
    archive, _ = built
    check = image_archive.configuration(archive)["Healthcheck"]["Test"]
    assert check[:3] == ["CMD", "python", "deploy/probe.py"]
    assert "zonal/deploy/probe.py" in {each.path for each in image_archive.files(archive)}


def leaks(files: Iterator[LayerFile], marker: str) -> list[str]:
    """Return the files that hold the marker, and those of ours that hold a private key."""
    return [
        each.path
        for each in files
        if marker.encode() in each.data
        or (each.path.startswith("zonal/") and PRIVATE_KEY.search(each.data))
    ]


def test_a_secret_that_a_later_layer_deletes_is_found(tmp_path: Path) -> None:
    """The search itself, where there is no builder."""
    layers = {
        "one/layer.tar": {"zonal/.env": b"SECRET_KEY=marked", "zonal/manage.py": b"pass"},
        "two/layer.tar": {"zonal/.wh..env": b"", "./etc/passwd": b"zonal:x:10001:"},
    }
    parts = {name: tar_of(content) for name, content in layers.items()}
    parts["config.json"] = json.dumps({"config": {"User": "zonal"}}).encode()
    parts["manifest.json"] = json.dumps([{"Config": "config.json", "Layers": [*layers]}]).encode()
    archive = tmp_path / "image.tar"
    archive.write_bytes(tar_of(parts))
    assert leaks(image_archive.files(archive), "marked") == ["zonal/.env"]
    assert image_archive.configuration(archive) == {"User": "zonal"}
    assert [each.path for each in image_archive.files(archive)][-1] == "etc/passwd"


def tar_of(content: dict[str, bytes]) -> bytes:
    """Return an archive of files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return target.getvalue()
