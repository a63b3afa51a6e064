"""Restored bytes are durable when that is said, with the names of their folders."""

import os
from pathlib import Path

import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.stores.archived_bytes import Bytes, BytesRestore, path_of


async def test_a_restored_file_s_name_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{file}")))  # noqa: PTH115 - no real path
        real(file)

    body, sha256 = tmp_path / "body", manifest_of(b"bytes").sha256.hex()
    body.write_bytes(b"bytes")
    monkeypatch.setattr(os, "fsync", fsync)
    await BytesRestore(tmp_path / "data", [StoreSettings()]).write(Bytes(sha256, 5), body, [])

    path = path_of(tmp_path / "data", sha256)
    assert path.read_bytes() == b"bytes"
    assert synced[-1] == path.parent
    assert {path.parent.parent, tmp_path / "data"} <= set(synced)
