"""Read a saved image (`docker save`): its configuration and every file of its layers."""

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class LayerFile:
    """A file or folder as one layer has it; a later layer may hide it, but not remove it."""

    path: str
    uid: int
    mode: int
    data: bytes


def configuration(archive: Path) -> dict[str, Any]:
    """Return what the image runs, as whom and how its health is asked."""
    with tarfile.open(archive) as opened:
        [manifest] = json.loads(_read(opened, "manifest.json"))
        found: dict[str, Any] = json.loads(_read(opened, manifest["Config"]))["config"]
    return found


def history(archive: Path) -> str:
    """Return the commands that made the layers; arguments of a build show there."""
    with tarfile.open(archive) as opened:
        [manifest] = json.loads(_read(opened, "manifest.json"))
        return json.dumps(json.loads(_read(opened, manifest["Config"])).get("history", []))


def files(archive: Path) -> Iterator[LayerFile]:
    """Yield what the layers hold, one layer after the other."""
    with tarfile.open(archive) as opened:
        [manifest] = json.loads(_read(opened, "manifest.json"))
        for name in manifest["Layers"]:
            layer = opened.extractfile(name)
            assert layer is not None, name
            with tarfile.open(fileobj=layer) as members:
                for member in members:
                    data = members.extractfile(member) if member.isfile() else None
                    yield LayerFile(
                        member.name.removeprefix("./"),
                        member.uid,
                        member.mode & 0o7777,
                        data.read() if data else b"",
                    )


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    found = archive.extractfile(name)
    assert found is not None, name
    return found.read()
