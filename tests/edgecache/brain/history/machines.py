"""A brain and two workers on small disks, and what happens to them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.edgecache.cluster import Cluster, until
from tests.edgecache.databases import own_files

SIZE = "2g"
WORKERS = 2
# The place of the store; the brain is place 0, the workers follow.
STORE = WORKERS + 1
BLOCK = 4096


@dataclass
class Machines:
    """disks: by the number of the process.

    store, store_url: the folder and the database of the brain that is the store.

    durable: the place with the only durable bytes, None if these cannot be altered.
    """

    cluster: Cluster
    store: Path | None
    durable: int | None
    store_url: str = ""
    full: set[int] = field(default_factory=set)
    dead: set[int] = field(default_factory=set)

    def disk(self, number: int) -> Path:
        """Return the disk of the brain (0) or of a worker."""
        return self.cluster.folder / (f"worker{number - 1}" if number else "brain")

    @contextmanager
    def disks(self) -> Iterator[None]:
        """Mount the disks."""
        mounted: list[Path] = []
        try:
            for number in range(WORKERS + 1):
                disk = self.disk(number)
                disk.mkdir()
                _mount("-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", disk)
                mounted.append(disk)
            yield
        finally:
            for disk in mounted:
                subprocess.run(["umount", "-l", disk], check=True)

    def fill(self, number: int, *, free_blocks: int) -> None:
        """Leave a disk only some blocks."""
        used = subprocess.run(
            ["df", "--block-size=1", "--output=used", self.disk(number)],
            check=True,
            capture_output=True,
            text=True,
        )
        size = max(int(used.stdout.split()[1]) + free_blocks * BLOCK, BLOCK)
        try:
            _mount("-o", f"remount,size={size}", self.disk(number))
        except subprocess.CalledProcessError:
            # More was written by then.
            return
        self.full.add(number)

    def make_room(self) -> None:
        """Free all the disks."""
        for number in self.full:
            _mount("-o", f"remount,size={SIZE}", self.disk(number))
        self.full.clear()

    def kill(self, numbers: set[int]) -> None:
        """Kill processes as a power cut would."""
        for number in numbers - self.dead:
            self.cluster.kill(number)
            self.dead.add(number)

    def revive(self) -> None:
        """Start what was killed, and wait until the brain serves."""
        for number in self.dead:
            self.cluster.restart(number)
        self.dead.clear()
        until(self._serves, seconds=60)

    def files(self, sha256: str, place: int) -> list[Path]:
        """Return a place's files with some bytes. place: a process, or the store."""
        if place == STORE:
            paths = self._own_files(sha256, self.store / "brain") if self.store else []
        elif place:
            paths = [self.disk(place) / "objects" / sha256[:2] / sha256]
        else:
            paths = [self.disk(0) / "blobs" / sha256[:2] / sha256]
            paths += self._own_files(sha256, self.disk(0))
        return [path for path in paths if path.exists()]

    def _own_files(self, sha256: str, data_dir: Path) -> list[Path]:
        url = self.store_url if data_dir != self.disk(0) else self.cluster.database_url
        return own_files(url, data_dir, bytes.fromhex(sha256))

    def _serves(self) -> bool:
        try:
            self.cluster.call("GET", "/health")
        except OSError:
            return False
        return True


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)
