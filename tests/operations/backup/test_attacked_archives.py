"""Someone who can write to the store of backups, but has no key of the platform."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from common.crypto import keyed_digest
from environments.models import Organization
from operations.backup import manifest
from tests.commands import facts, refused
from tests.edgecache.databases import new_database
from tests.operations.backup.keys import Keys
from tests.operations.backup.targets import BytesRestore
from tests.sqlgateway.databases.conftest import second_url

pytestmark = pytest.mark.slow

__all__ = ["second_url"]

TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' OR schemaname LIKE 'zonal%%'"
# A sparse file: too large to be read during a test or to fit on a disk.
HUGE_BYTES = 2**42

MANIFEST = "manifest.json"

Damage = Callable[[Path], Any]


@pytest.fixture
def target(store: Path, keys: Keys, second_url: str, tmp_path: Path) -> Iterator[BytesRestore]:
    """Return an empty platform."""
    with new_database() as control_url:
        yield BytesRestore(tmp_path, control_url, second_url, keys)


def _huge(file: Path) -> None:
    os.truncate(file, HUGE_BYTES)


def _cut(share: float) -> Damage:
    def cut(file: Path) -> None:
        os.truncate(file, int(file.stat().st_size * share))

    return cut


def _in_place(make: Damage) -> Damage:
    def replace(file: Path) -> None:
        file.unlink()
        make(file)

    return replace


LINKS_AND_DEVICES: dict[str, Damage] = {
    "a symbolic link to a device": _in_place(lambda file: file.symlink_to("/dev/zero")),
    "a symbolic link to another file": _in_place(lambda file: file.symlink_to("/etc/passwd")),
    "a hard link to another part": _in_place(
        lambda file: file.hardlink_to(next(file.parent.rglob("*.age")))
    ),
    "a pipe": _in_place(os.mkfifo),
    "a folder": _in_place(Path.mkdir),
}
DAMAGES: dict[str, Damage] = {
    **LINKS_AND_DEVICES,
    "larger than the manifest says": _huge,
    "empty": _cut(0.0),
    "cut in its middle": _cut(0.5),
    "gone": Path.unlink,
}


def _signed(file: Path, **changes: Any) -> str:
    """Return a manifest that the platform itself wrote, with other fields."""
    given = json.loads(file.read_text())
    body = json.dumps(json.loads(given["body"]) | changes)
    key = settings.SECRET_KEYS[0]
    code = keyed_digest(key, manifest.PURPOSE, "manifest", body).hex()
    return json.dumps(given | {"mac": code, "body": body})


def test_no_manifest_of_another_author_is_read(home: Organization, store: Path, keys: Keys) -> None:
    older, newer = facts("backup")["id"], facts("backup")["id"]
    file = store / "backups" / newer / MANIFEST
    whole = file.read_text()
    given = json.loads(whole)

    def refusal(backup_id: str = newer) -> str:
        return str(refused("restore", backup_id, "--identity", str(keys.file))[1]["code"])

    wrong = {
        "no JSON": "\x00",
        "not even text": b"\xff\xfe",
        "no object": "[]",
        "as deep as the parser's stack": "[" * 200_000,
        "a signature that is no text": json.dumps(given | {"mac": 1}),
        "a signature outside of ASCII": json.dumps(given | {"mac": "é"}),
        "half a character": json.dumps(given | {"body": "\ud800"}),
        "a second body": whole[:-1] + ', "body": "{}"}',
        "cut": whole[: len(whole) // 2],
        "of another backup": (store / "backups" / older / MANIFEST).read_text(),
    }
    for what, text in wrong.items():
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert refusal() == "backup_altered", what
        # It does not hide the others.
        states = {each["id"]: each["state"] for each in facts("backup", "--list")["backups"]}
        assert states == {newer: "altered", older: "complete"}, what
    for what, damage in {**LINKS_AND_DEVICES, "huge": _huge}.items():
        damage(file)
        assert refusal() in {"backup_altered", "backup_not_found"}, what
        file.rmdir() if file.is_dir() else file.unlink()
        file.write_text(whole)
    file.write_text(_signed(file, format=manifest.FORMAT + 1, compression="zstd"))
    assert refusal() == "version_differs"
    assert facts("backup", "--list")["backups"][0]["state"] == "other_version"
    # The newest that can be read is the newest.
    assert refusal("latest") == "not_empty"
    outside = store.parent / "outside"
    shutil.copytree(store / "backups" / older, outside)
    for name in ("../outside", str(outside), "..", ".", "", f"{older}/", f"./{older}"):
        assert refusal(name) == "backup_not_found", name


def test_no_part_of_a_backup_can_be_exchanged(
    home: Organization, store: Path, target: BytesRestore, keys: Keys
) -> None:
    older, newer = (store / "backups" / facts("backup")["id"] for _ in range(2))

    def refused_unchanged(what: str) -> None:
        assert target.refusal() == "backup_altered", what
        # Nothing is written, and nothing readable is left.
        assert target.rows(TABLES) == [(0,)], what
        assert not [path for path in target.data_dir.rglob("*") if path.is_file()], what

    parts = ("contents.age", "default.dump.age", "objects.age", "objects.txt")
    kept = store.parent / "kept"
    shutil.copytree(newer, kept)

    def put_back() -> None:
        shutil.rmtree(newer)
        shutil.copytree(kept, newer)

    # Parts that are decrypted: in a platform that runs, and in an empty one.
    words = ("--identity", str(keys.file), "--environment", f"{home.pk}:live")
    for what, damage in DAMAGES.items():
        for part in ("contents.age", "environments/1.dump.age"):
            damage(newer / part)
            assert refused("restore", *words)[1]["code"] == "backup_altered", (part, what)
            put_back()
    _huge(newer / "default.dump.age")
    _huge(newer / "objects.txt")
    refused_unchanged("larger than the manifest says")
    put_back()
    _in_place(os.mkfifo)(newer / "objects.age")
    refused_unchanged("a pipe")
    put_back()
    for part in parts[:3]:
        shutil.copy(older / part, newer / part)
    refused_unchanged("parts of an older backup with the same key")
    put_back()
    first, second = (newer / "environments" / f"{number}.dump.age" for number in (1, 2))
    aside = first.rename(newer / "aside")
    second.rename(first)
    aside.rename(second)
    refused_unchanged("environments exchanged")
    put_back()
    assert target.restore()["id"] == newer.name
