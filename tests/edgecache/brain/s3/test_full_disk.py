"""A full disk behind the object API: the error names it, and no data is lost or half written."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.edgecache.brain.s3.raw import Answer, Signer
from tests.edgecache.cluster import Cluster, until
from tests.edgecache.databases import brain_database

pytestmark = pytest.mark.slow

# Below this folder the disk has room for one block more of each piece, and then for nothing.
FULL = """
import errno, os, pathlib, runpy
note, write, rename = pathlib.Path({note!r}), os.write, os.rename

def write_if_room(file, data):
    folder = note.read_text() if note.exists() else ""
    if folder and os.readlink(f"/proc/self/fd/{{file}}").startswith(folder):
        if len(data) <= 4096:
            raise OSError(errno.ENOSPC, "full")
        data = data[:4096]
    return write(file, data)

def rename_within(source, target):
    folder = note.read_text() if note.exists() else ""
    if folder and str(target).startswith(folder) and not str(source).startswith(folder):
        raise OSError(errno.EXDEV, "another disk")
    return rename(source, target)

os.write, os.rename = write_if_room, rename_within
runpy.run_module("edgecache.brain", run_name="__main__")
"""
# Written as a row, in memory as a whole, and by way of a file.
BODIES = {"small": os.urandom(10), "middle": os.urandom(300_000), "large": os.urandom(3_000_000)}


@dataclass
class SmallDisk(Cluster):
    """A brain without nodes; its disks can be full."""

    workers: int = 0

    def _spawn(self, log: str, command: list[str], environment: dict[str, str]) -> None:
        super()._spawn(log, ["-c", FULL.format(note=str(self.note))], environment)

    @property
    def note(self) -> Path:
        """Return the file that names the folder that is full."""
        return self.folder / "full"

    @contextmanager
    def full(self, folder: Path) -> Iterator[None]:
        """Let a folder have no room while the block runs."""
        self.note.write_text(str(folder))
        yield
        self.note.unlink()

    def serves(self) -> bool:
        """Return whether the brain serves."""
        try:
            self.call("GET", "/health")
        except OSError:
            return False
        return True

    def files(self) -> dict[Path, int]:
        """Return every body on the disks, and its size."""
        found = (path for name in ("brain", "store") for path in (self.folder / name).rglob("*"))
        kept = (path for path in found if path.is_file())
        return {path: path.stat().st_size for path in kept if path.name != "lock"}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], SmallDisk]]:
    """Return a function that starts a brain. store: the folder of its store, none by default."""
    started: list[SmallDisk] = []
    with brain_database() as url:

        def begin(store: str) -> SmallDisk:
            (tmp_path / "store").mkdir()
            variables = {"ZBRAIN_STORE_URL": f"file://{tmp_path}/store"} if store else {}
            secret_key = Fernet.generate_key().decode()
            started.append(SmallDisk(tmp_path, url, secret_key, variables=variables))
            started[0].start()
            return started[0]

        yield begin
        for each in started:
            each.end()


class Client:
    """An organization with objects, and an upload with its first part."""

    def __init__(self, disk: SmallDisk) -> None:
        self._signer = Signer(disk.tenant(), disk.url)
        self.send("PUT", "/docs")
        for key, body in BODIES.items():
            assert self.put(f"held-{key}", body).status == 200
        self._upload = self.send("POST", "/docs/joined?uploads=").text("UploadId")
        self._tags = [self.put_part(1).headers["etag"]]

    def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Send a signed request."""
        return self._signer.send(method, path, body)

    def put(self, key: str, body: bytes) -> Answer:
        """PUT an object."""
        return self.send("PUT", f"/docs/{key}", body)

    def put_part(self, number: int) -> Answer:
        """Send a part of the upload."""
        target = f"/docs/joined?partNumber={number}&uploadId={self._upload}"
        return self.send("PUT", target, self.part(number))

    def complete(self, count: int) -> Answer:
        """Complete the upload with its first parts."""
        tags = [hashlib.md5(self.part(n), usedforsecurity=False).hexdigest() for n in (1, 2)]
        parts = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{tags[n - 1]}</ETag></Part>"
            for n in range(1, count + 1)
        )
        document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
        return self.send("POST", f"/docs/joined?uploadId={self._upload}", document.encode())

    @staticmethod
    def part(number: int) -> bytes:
        """Return the bytes of a part."""
        return bytes([number]) * (5 * 2**20 if number == 1 else 100_000)

    def reads_what_it_wrote(self) -> bool:
        """True if each acknowledged object has its bytes, and none of the refused ones exists."""
        held = [self.send("GET", f"/docs/held-{key}").body for key in BODIES]
        refused = {self.send("GET", f"/docs/{key}").code for key in BODIES}
        return held == list(BODIES.values()) and refused == {"NoSuchKey"}

    def finish(self) -> None:
        """Write all that was refused, and read it back."""
        for key, body in BODIES.items():
            assert self.put(key, body).status == 200
            assert self.put(f"held-{key}", body[::-1]).status == 200
        assert self.put_part(2).status == 200
        assert b"<CompleteMultipartUploadResult" in self.complete(2).body
        self.check_finished()

    def check_finished(self) -> None:
        """Check what ``finish`` wrote."""
        for key, body in BODIES.items():
            assert self.send("GET", f"/docs/{key}").body == body
            assert self.send("GET", f"/docs/held-{key}").body == body[::-1]
        assert self.send("GET", "/docs/joined").body == self.part(1) + self.part(2)


DISK = (503, "StorageFull", "disk", "The cache's disk is full; nothing was stored.")
STORE = (
    503,
    "ServiceUnavailable",
    "",
    "The store of this platform's objects is full; nothing was stored.",
)


@pytest.mark.parametrize(
    ("store", "full", "refused", "error"),
    [
        # Small bodies are in the database.
        ("", "brain", ["middle", "large"], DISK),
        # A body that is in memory needs no room where the others wait for the store.
        ("store", "brain", ["large"], DISK),
        ("store", "store", ["middle", "large"], STORE),
    ],
    ids=["built-in store", "staging", "store in a folder"],
)
def test_a_full_disk_refuses_writes_and_loses_none(
    start: Callable[[str], SmallDisk],
    store: str,
    full: str,
    refused: list[str],
    error: tuple[int, str, str, str],
) -> None:
    disk = start(store)
    client = Client(disk)
    before = disk.files()

    with disk.full(disk.folder / full):
        answers = [client.put(key, BODIES[key]) for key in refused]
        answers += [client.put(f"held-{key}", BODIES[key][::-1]) for key in refused]
        answers += [client.put_part(2), client.complete(1)]
        for answer in answers:
            said = answer.status, answer.code, answer.text("Limit"), answer.text("Message")
            assert said == error
            assert answer.headers["retry-after"] == "1"
        assert client.reads_what_it_wrote()
        until(lambda: disk.files() == before)

    client.finish()
    # Nothing of it was in memory alone.
    disk.kill(0)
    disk.restart(0)
    until(disk.serves, seconds=60)
    client.check_finished()
