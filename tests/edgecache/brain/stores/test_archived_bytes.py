"""Restored bytes are durable when that is said, with the names of their folders."""

import os
from pathlib import Path

import psycopg
import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.stores.archived_bytes import Bytes, BytesRestore
from tests.edgecache.brain.brains import ALICE, Rows


async def test_a_restored_file_s_name_is_durable(
    tmp_path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{file}")))  # noqa: PTH115 - no real path
        real(file)

    body, sha256 = tmp_path / "body", manifest_of(b"bytes").sha256.hex()
    body.write_bytes(b"bytes")
    restore = BytesRestore(tmp_path / "data", [StoreSettings()])
    monkeypatch.setattr(os, "fsync", fsync)
    with psycopg.connect(rows.url) as connection:
        restore.prepare(connection)
    ((_, name),) = await restore.write(Bytes(sha256, 5), body, [ALICE])

    path = tmp_path / "data" / "objects" / name
    assert path.read_bytes() == b"bytes"
    assert synced[-1] == path.parent
    assert {tmp_path, tmp_path / "data", *list(path.parents)[1:6]} <= set(synced)
