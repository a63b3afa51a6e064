"""The store keeps to its budget, and its files and rows agree after any operations."""

import hashlib
import os
import random
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edgecache.worker.store import inventory
from edgecache.worker.store.eviction import footprint, read_totals
from edgecache.worker.store.files import FolderInUse
from edgecache.worker.store.incoming import Incoming, WrongBytes
from edgecache.worker.store.inventory import InventoryReader
from edgecache.worker.store.recovery import open_store
from edgecache.worker.store.worker_store import LEASE_S, StoreFull, WorkerStore
from tests.edgecache.memory import memory_folder

pytestmark = pytest.mark.slow

KIB = 1 << 10
BLOCK = 4 * KIB


def name(content: bytes) -> bytes:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(content).digest()


def put(store: WorkerStore, content: bytes, *, named: bytes | None = None) -> bool:
    """Store some bytes as a PUT does."""
    sha256 = name(content) if named is None else named
    if store.has(sha256):
        return False
    incoming = Incoming(store, sha256, len(content))
    try:
        incoming.write(content)
        return incoming.finish()
    finally:
        incoming.discard()


def on_disk(store: WorkerStore) -> dict[bytes, int]:
    """Return the blobs on the disk."""
    return dict(store.files.walk())


def rows(store: WorkerStore) -> dict[bytes, int]:
    """Return the blobs of the inventory."""
    with store.using() as db:
        return dict(db.execute("SELECT sha256, size FROM objects").fetchall())


def reported(store: WorkerStore) -> set[bytes]:
    """Return the blobs that a brain knows from all reported changes."""
    known: set[bytes] = set()
    with store.using() as db:
        for change in inventory.changes(db, 1_000_000):
            if change.size is None:
                known.discard(change.sha256)
            else:
                known.add(change.sha256)
    return known


def wanted(store: WorkerStore) -> set[bytes]:
    """Return the blobs of a full inventory."""
    with store.using() as db:
        return {sha256 for sha256, _ in inventory.page(db, after=b"", limit=1_000_000)}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder in memory: stores sync every object, which is slow on a disk."""
    with memory_folder() as folder:
        yield folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WorkerStore]:
    """Return a store of 16 blocks."""
    opened = open_store(tmp_path, 16 * BLOCK)
    yield opened
    opened.close()


class AnyOrder(RuleBasedStateMachine):
    """After any sequence of operations, the disk, rows, totals and reports agree."""

    contents = [os.urandom(size) for size in (0, 1, 100, BLOCK, BLOCK + 1, 3 * BLOCK, 9 * BLOCK)]
    some = st.sampled_from(contents)

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.folder = self.stack.enter_context(memory_folder())
        self.capacity = 16 * BLOCK
        self.store = open_store(self.folder, self.capacity)
        self.now = 0.0

    @rule(content=some)
    def put(self, content: bytes) -> None:
        put(self.store, content)
        assert self.store.has(name(content))

    @rule(content=some)
    def put_wrong(self, content: bytes) -> None:
        named = name(content + b"?")
        with pytest.raises(WrongBytes):
            put(self.store, content, named=named)
        assert not self.store.has(named)

    @rule(content=some, times=st.integers(1, 4))
    def read(self, content: bytes, times: int) -> None:
        for _ in range(times):
            self.store.count_read(name(content))

    @rule(content=some)
    def schedule_unlink(self, content: bytes) -> None:
        self.store.schedule_unlink(name(content))
        assert not self.store.is_wanted(name(content))

    @rule()
    def pass_time(self) -> None:
        with self.store.using() as db:
            db.execute("UPDATE objects SET unlink_at = 1 WHERE unlink_at IS NOT NULL")
        self.store.unlink_due(2)

    @rule(content=some)
    def lose(self, content: bytes) -> None:
        self.store.discard(name(content), self.store.files.state(name(content)))

    @rule(blocks=st.sampled_from([10, 12, 16]))
    def restart(self, blocks: int) -> None:
        self.store.close()
        self.capacity = blocks * BLOCK
        self.store = open_store(self.folder, self.capacity)

    @precondition(lambda self: self.store.held().objects)
    @rule()
    def crash_and_lose_a_file(self) -> None:
        victim = next(iter(on_disk(self.store)))
        self.store.files.unlink(victim)
        with self.store.using() as db:
            inventory.set_meta(db, "is_clean", 0)
        self.store._db.close()
        self.store.files.close()
        self.store = open_store(self.folder, self.capacity)
        assert not self.store.has(victim)

    @invariant()
    def disk_and_rows_agree(self) -> None:
        assert on_disk(self.store) == rows(self.store)

    @invariant()
    def the_budget_is_kept(self) -> None:
        used = sum(footprint(size) for size in on_disk(self.store).values())
        assert self.store.held().used_bytes == used <= self.capacity
        assert self.store.held().objects == len(on_disk(self.store))
        assert self.store._reserved == 0

    @invariant()
    def the_brain_knows_what_is_wanted(self) -> None:
        assert reported(self.store) == wanted(self.store)

    @invariant()
    def the_totals_are_those_of_the_rows(self) -> None:
        with self.store.using() as db:
            counted = read_totals(db)
        held = self.store._totals
        assert (counted.small_bytes, counted.main_bytes) == (held.small_bytes, held.main_bytes)
        assert counted.evictions == held.evictions

    @invariant()
    def nothing_is_half_done(self) -> None:
        assert list((self.folder / "incoming").iterdir()) == []

    def teardown(self) -> None:
        self.store.close()
        self.stack.close()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(
    # CI takes three times as many.
    max_examples=settings().max_examples // 6,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def _size(path: Path) -> int:
    """Return a file's size, 0 once it is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_concurrent_writes_keep_the_budget_and_the_totals(tmp_path: Path) -> None:
    capacity = 64 * BLOCK
    store = open_store(tmp_path, capacity)
    contents = [os.urandom(1 + 7919 * number % (6 * BLOCK)) for number in range(60)]
    over: list[int] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            used = sum(map(_size, tmp_path.glob("objects/*/*")))
            if used > capacity:
                over.append(used)

    def work(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 - the same choices each time
        for _ in range(60):
            content = chance.choice(contents)
            match chance.randrange(6):
                case 0:
                    store.schedule_unlink(name(content))
                case 1:
                    store.discard(name(content), store.files.state(name(content)))
                case 2:
                    store.unlink_due(2**40)
                case _:
                    put(store, content)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    stop.set()
    watcher.join()
    assert over == []
    assert on_disk(store) == rows(store)
    assert store.held().used_bytes == sum(footprint(size) for size in on_disk(store).values())
    assert store._reserved == 0
    assert reported(store) == wanted(store)
    store.close()


def test_space_is_reserved_for_running_writes(store: WorkerStore) -> None:
    first = store.reserve(10 * BLOCK)
    with pytest.raises(StoreFull):
        store.reserve(7 * BLOCK)
    second = store.reserve(6 * BLOCK)
    store.release(first)
    store.release(second)
    assert store.reserve(16 * BLOCK) == 16 * BLOCK


def test_an_object_larger_than_the_store_evicts_nothing(store: WorkerStore) -> None:
    put(store, b"held")
    with pytest.raises(StoreFull):
        store.reserve(16 * BLOCK + 1)
    assert store.has(name(b"held"))


def test_a_deleted_file_is_removed_when_its_lease_ends(
    store: WorkerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, b"held")
    monkeypatch.setattr("edgecache.worker.store.worker_store.time.time", lambda: 1000.0)
    assert store.schedule_unlink(name(b"held"))
    assert store.unlink_due(1000 + LEASE_S - 1) == 0
    assert on_disk(store)
    assert store.unlink_due(1000 + LEASE_S) == 1
    assert not on_disk(store)
    assert not store.schedule_unlink(name(b"held"))


def test_what_is_stored_again_outlives_the_removal_of_the_wrong_file(store: WorkerStore) -> None:
    content = b"right"
    put(store, content)
    path = Path(store.files.path(name(content)))
    path.chmod(0o600)
    path.write_bytes(b"wrong")
    # Two readers noticed it concurrently.
    wrong = store.files.state(name(content))
    assert store.discard(name(content), wrong)
    assert not path.exists()
    put(store, content)
    assert not store.discard(name(content), wrong)
    assert path.read_bytes() == content
    assert store.is_wanted(name(content))


def test_deleted_objects_are_evicted_first(store: WorkerStore) -> None:
    old = os.urandom(6 * BLOCK)
    unwanted = os.urandom(6 * BLOCK)
    put(store, old)
    put(store, unwanted)
    store.schedule_unlink(name(unwanted))
    put(store, os.urandom(6 * BLOCK))
    assert store.has(name(old))
    assert not store.has(name(unwanted))
    assert store.held().evictions == 0


def test_an_object_read_twice_outlives_one_read_once(tmp_path: Path) -> None:
    store = open_store(tmp_path, 100 * BLOCK)
    once, twice = os.urandom(BLOCK), os.urandom(BLOCK)
    for content, reads in ((once, 1), (twice, 2)):
        put(store, content)
        for _ in range(reads):
            store.count_read(name(content))
    for _ in range(150):
        put(store, os.urandom(BLOCK))
    assert not store.has(name(once))
    assert store.has(name(twice))
    store.close()


def test_a_scan_does_not_evict_warm_objects(tmp_path: Path) -> None:
    store = open_store(tmp_path, 100 * BLOCK)
    warm = [os.urandom(BLOCK) for _ in range(50)]
    for content in warm:
        put(store, content)
    for number in range(1000):
        for content in warm[number % 50 :: 50]:
            store.count_read(name(content))
            store.count_read(name(content))
        put(store, os.urandom(BLOCK))
    assert sum(store.has(name(content)) for content in warm) >= 45
    store.close()


def test_an_object_stored_again_soon_enters_the_main_queue(tmp_path: Path) -> None:
    store = open_store(tmp_path, 100 * BLOCK)
    again = os.urandom(BLOCK)
    put(store, again)
    for _ in range(110):
        put(store, os.urandom(BLOCK))
    assert not store.has(name(again))
    put(store, again)
    for _ in range(150):
        put(store, os.urandom(BLOCK))
    assert store.has(name(again))
    store.close()


def test_the_ghost_queue_is_bounded(tmp_path: Path) -> None:
    store = open_store(tmp_path, 4 * BLOCK)
    for number in range(1500):
        put(store, b"%d" % number)
    with store.using() as db:
        (ghosts,) = db.execute("SELECT COUNT(*) FROM ghosts").fetchone()
    assert 0 < ghosts <= 1000
    store.close()


def test_a_failed_row_leaves_no_file(store: WorkerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    put(store, b"held")
    monkeypatch.setattr(inventory, "add", fail)
    with pytest.raises(sqlite3.OperationalError):
        put(store, b"other")
    monkeypatch.undo()
    assert set(on_disk(store)) == {name(b"held")}
    assert store._reserved == 0
    assert put(store, b"other")


def test_a_running_write_does_not_block_reads(store: WorkerStore, tmp_path: Path) -> None:
    put(store, b"held")
    reader = InventoryReader(tmp_path)
    with store.using() as db:
        db.execute("DELETE FROM objects")
        assert reader.size(name(b"held")) == 4
        db.execute("ROLLBACK")
        db.execute("BEGIN")
    reader._db.close()


def test_a_second_store_on_one_folder_is_refused(store: WorkerStore, tmp_path: Path) -> None:
    with pytest.raises(FolderInUse):
        open_store(tmp_path, 16 * BLOCK)


def test_a_start_after_a_clean_stop_does_not_scan_the_disk(tmp_path: Path) -> None:
    open_store(tmp_path, 16 * BLOCK).close()
    stray = tmp_path / "objects" / name(b"x").hex()[:2] / name(b"x").hex()
    stray.write_bytes(b"x")
    store = open_store(tmp_path, 16 * BLOCK)
    with store.using() as db:
        assert db.execute("SELECT COUNT(*) FROM strangers").fetchone() == (0,)
    store.close()
