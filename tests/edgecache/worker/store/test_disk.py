"""A full, over-budget or corrupt disk: the worker reports it and continues with what works."""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.edgecache.worker.brain import FakeBrain
from tests.edgecache.worker.running import Worker, name

pytestmark = pytest.mark.slow

BLOCK = 4096


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a mounted file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * BLOCK)


def test_a_full_disk_is_reported_and_answered_with_507(
    brain: FakeBrain, workers: Callable[..., Worker], small_disk: Path
) -> None:
    worker = workers(capacity="1GiB")
    worker.store.symlink_to(small_disk)
    worker.start()
    held = os.urandom(1_000_000)
    large = os.urandom(5_000_000)
    assert worker.put(held).status == 201
    answer = worker.put(large)
    assert (answer.status, b"store_full" in answer.body) == (507, True)
    assert worker.incoming() == []
    brain.wait_for(lambda: brain.beats[-1].problems == ("disk_full",))
    assert b"disk_full" in worker.request("GET", "/healthz").body
    assert worker.get(held).body == held
    assert worker.get(large).status == 404
    assert worker.put(os.urandom(100_000)).status == 201
    brain.wait_for(lambda: brain.beats[-1].problems == ())


def test_a_worker_with_a_full_disk_serves_and_counts_reads(
    workers: Callable[..., Worker], small_disk: Path
) -> None:
    worker = workers(capacity="1GiB")
    worker.store.symlink_to(small_disk)
    worker.start()
    held = os.urandom(1_000_000)
    assert worker.put(held).status == 201
    filler = small_disk / "filler"
    fill(filler)
    assert worker.put(os.urandom(1000)).status == 507
    direct = worker.direct_ticket(held)
    assert worker.show(direct, held).body == held
    assert worker.delete(held).status in {204, 507}
    assert worker.get(held).body == held
    filler.unlink()
    assert worker.put(os.urandom(1000)).status == 201
    worker.wait_until(lambda: worker.request("GET", "/healthz").body.count(b"disk_") == 0)


def test_a_file_size_limit_counts_as_a_full_disk(workers: Callable[..., Worker]) -> None:
    worker = workers(capacity="1GiB", wrapper=["prlimit", "--fsize=1000000"]).start()
    assert worker.put(os.urandom(2_000_000)).status == 507
    small = os.urandom(500_000)
    assert worker.put(small).status == 201
    assert worker.get(small).body == small
    assert worker.incoming() == []


def test_the_budget_is_kept_by_evicting_cold_objects_first(workers: Callable[..., Worker]) -> None:
    worker = workers(capacity="1MiB").start()
    warm = os.urandom(50_000)
    assert worker.put(warm).status == 201
    cold = [os.urandom(50_000) for _ in range(60)]
    for content in cold:
        for _ in range(3):
            assert worker.get(warm).status == 200
        assert worker.put(content).status == 201
        assert worker.metric("used_bytes") <= 1 << 20
    assert worker.get(warm).body == warm
    assert worker.get(cold[0]).status == 404
    assert worker.get(cold[-1]).body == cold[-1]
    assert worker.metric("evictions") >= 40
    held = {path.name for path in worker.store.glob("objects/*/*")}
    assert sum(path.stat().st_size for path in worker.store.glob("objects/*/*")) <= 1 << 20
    worker.brain.wait_for(lambda: {sha256.hex() for sha256 in worker.brain.held()} == held)
    assert worker.brain.wait_for_beat().evictions == worker.metric("evictions")


def test_a_reduced_budget_is_applied_at_the_start(workers: Callable[..., Worker]) -> None:
    worker = workers(capacity="8MiB").start()
    for _ in range(7):
        worker.put(os.urandom(1_000_000))
    worker.kill()
    worker.capacity = "3MiB"
    worker.start()
    assert 0 < worker.metric("used_bytes") <= 3 << 20
    worker.wait_until(lambda: len(list(worker.store.glob("objects/*/*"))) == 3)
    worker.brain.wait_for(lambda: len(worker.brain.held()) == 3)


def test_a_corrupt_file_is_found_removed_and_reported(workers: Callable[..., Worker]) -> None:
    worker = workers("--scrub-per-hour", "72000").start()
    good, bad = os.urandom(300_000), os.urandom(300_000)
    worker.put(good)
    worker.put(bad)
    worker.brain.wait_for(lambda: len(worker.brain.held()) == 2)
    with worker.file(bad).open("r+b") as file:
        file.seek(150_000)
        file.write(bytes([bad[150_000] ^ 1]))
    worker.wait_until(lambda: not worker.file(bad).exists())
    worker.brain.wait_for(lambda: set(worker.brain.held()) == {name(good)})
    worker.brain.wait_for(
        lambda: any(beat.problems == ("corruption",) for beat in worker.brain.beats)
    )
    worker.brain.wait_for(lambda: worker.brain.beats[-1].problems == ())
    assert worker.get(bad).status == 404
    assert worker.get(good).body == good
    assert worker.metric("corrupted_files_total") == 1
    assert worker.put(bad).status == 201


def test_scrubbing_does_not_exceed_its_rate(workers: Callable[..., Worker]) -> None:
    worker = workers("--scrub-per-hour", "360000", "--scrub-rate", "1MB").start()
    worker.put(os.urandom(500_000))
    worker.wait_until(lambda: worker.metric("scrubbed_files_total") >= 3)
    seconds = worker.metric("scrubbed_files_total") * 0.5
    assert worker.log.count("scrub") == 0
    assert seconds >= 1.5


def test_a_failing_inventory_is_reported_and_the_brain_s_reads_continue(worker: Worker) -> None:
    content = os.urandom(10_000)
    worker.put(content)
    used = worker.direct_ticket(content)
    with closing(sqlite3.connect(worker.store / "inventory.sqlite3")) as db:
        db.execute(
            "CREATE TRIGGER broken BEFORE INSERT ON receipts BEGIN SELECT RAISE(FAIL, ''); END"
        )
        db.commit()
        assert worker.show(used, content).body == content
        worker.wait_until(lambda: b"disk_failing" in worker.request("GET", "/healthz").body)
        db.execute("DROP TRIGGER broken")
        db.execute("ALTER TABLE receipts RENAME TO away")
        answer = worker.show(worker.direct_ticket(content), content)
        assert (answer.status, b"internal_error" in answer.body) == (500, True)
        assert worker.metric("faults_total") == 1
        assert worker.get(content).body == content
        db.execute("ALTER TABLE away RENAME TO receipts")
    assert worker.show(worker.direct_ticket(content), content).body == content
    worker.brain.signer.skew_s += 60
    worker.brain.wait_for(lambda: used in {line.ticket for line in worker.brain.receipts})


def test_changes_that_could_not_be_read_from_the_disk_are_reported_later(worker: Worker) -> None:
    content = os.urandom(10_000)
    worker.put(content)
    used = worker.direct_ticket(content)
    assert worker.show(used, content).body == content
    with closing(sqlite3.connect(worker.store / "inventory.sqlite3")) as db:
        db.execute("ALTER TABLE receipts RENAME TO away")
        worker.wait_until(lambda: b"disk_failing" in worker.request("GET", "/healthz").body)
        assert worker.get(content).body == content
        db.execute("ALTER TABLE away RENAME TO receipts")
    worker.brain.signer.skew_s += 60
    worker.brain.wait_for(lambda: used in {line.ticket for line in worker.brain.receipts})
