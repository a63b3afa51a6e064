"""A worker that is killed at any moment restarts with correct bytes and a correct inventory."""

import os
import signal
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.worker.brain import FakeBrain
from tests.edgecache.worker.running import Worker, altered, name

pytestmark = pytest.mark.slow

KEPT = os.urandom(500_000)
CONTENT = os.urandom(4_000_000)


def reported(worker: Worker) -> set[bytes]:
    """Request a full inventory; return the blobs that it names."""
    worker.brain.inventories.clear()
    worker.brain.wants_inventory = True
    worker.brain.wait_for(lambda: any(page.full and page.last for page in worker.brain.inventories))
    return set(worker.brain.held())


def test_a_kill_during_a_write_leaves_nothing(worker: Worker) -> None:
    assert worker.put(KEPT).status == 201
    ticket = worker.brain.signer.ticket(CONTENT, kind=TicketKind.STORE)
    head = (
        f"PUT {object_path(name(CONTENT))} HTTP/1.1\r\nHost: worker\r\n"
        f"{TICKET_HEADER}: {ticket}\r\nContent-Length: {len(CONTENT)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", worker.port)) as client:
        client.sendall(head.encode() + CONTENT[:3_000_000])
        worker.wait_until(lambda: worker.incoming() and worker.incoming()[0].stat().st_size > 0)
        worker.kill()
    worker.start()
    assert worker.incoming() == []
    assert worker.get(CONTENT).status == 404
    assert worker.get(KEPT).body == KEPT
    assert reported(worker) == {name(KEPT)}
    assert worker.put(CONTENT).status == 201


def test_a_file_without_a_row_is_added_after_a_kill(worker: Worker) -> None:
    worker.put(KEPT)
    worker.kill()
    # The state after a kill between rename and commit: a file without a row.
    worker.file(CONTENT).write_bytes(CONTENT)
    worker.start()
    worker.wait_until(lambda: worker.get(CONTENT).body == CONTENT)
    worker.brain.wait_for(lambda: name(CONTENT) in worker.brain.held())
    assert reported(worker) == {name(KEPT), name(CONTENT)}


def test_an_unreported_row_is_reported_after_a_kill(brain: FakeBrain, worker: Worker) -> None:
    brain.may_answer.clear()
    assert worker.put(CONTENT).status == 201
    worker.kill()
    brain.may_answer.set()
    assert name(CONTENT) not in brain.held()
    worker.start()
    brain.wait_for(lambda: name(CONTENT) in brain.held())
    assert worker.get(CONTENT).body == CONTENT


def test_a_found_file_with_wrong_bytes_is_never_served(worker: Worker) -> None:
    worker.kill()
    worker.file(CONTENT).write_bytes(altered(CONTENT))
    worker.start()
    worker.wait_until(lambda: not worker.file(CONTENT).exists())
    assert worker.get(CONTENT).status == 404
    assert name(CONTENT) not in reported(worker)


def test_unrelated_files_are_not_touched(worker: Worker) -> None:
    worker.kill()
    strays = [worker.store / "objects" / "ab" / "notes.txt", worker.store / "objects" / "ab" / "cd"]
    strays[0].write_text("mine")
    strays[1].mkdir()
    misplaced = worker.store / "objects" / "00" / name(CONTENT).hex()
    misplaced.write_bytes(CONTENT)
    worker.start()
    assert reported(worker) == set()
    assert worker.get(CONTENT).status == 404
    assert all(stray.exists() for stray in strays)


def test_rows_without_a_file_are_deleted_and_reported(worker: Worker) -> None:
    worker.put(KEPT)
    worker.put(CONTENT)
    worker.brain.wait_for(lambda: len(worker.brain.held()) == 2)
    worker.kill()
    worker.file(CONTENT).unlink()
    worker.start()
    worker.brain.wait_for(lambda: set(worker.brain.held()) == {name(KEPT)})
    assert worker.metric("objects") == 1


@pytest.mark.parametrize("damage", ["removed", "garbage", "cut"])
def test_a_lost_inventory_is_rebuilt_from_the_disk(worker: Worker, damage: str) -> None:
    worker.put(KEPT)
    worker.put(CONTENT)
    worker.kill()
    inventory = worker.store / "inventory.sqlite3"
    for suffix in ("-wal", "-shm"):
        Path(f"{inventory}{suffix}").unlink(missing_ok=True)
    if damage == "removed":
        inventory.unlink()
    else:
        whole = inventory.read_bytes()
        inventory.write_bytes(
            os.urandom(20_000) if damage == "garbage" else whole[: len(whole) // 2]
        )
    worker.start()
    worker.wait_until(lambda: worker.get(KEPT).status == 200 and worker.get(CONTENT).status == 200)
    assert reported(worker) == {name(KEPT), name(CONTENT)}


def test_a_clean_restart_keeps_all_objects(worker: Worker) -> None:
    worker.put(CONTENT)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    with sqlite3.connect(worker.store / "inventory.sqlite3") as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'is_clean'").fetchone() == (1,)
    worker.start()
    assert worker.get(CONTENT).body == CONTENT
    assert reported(worker) == {name(CONTENT)}


def test_an_interrupted_deletion_continues_after_a_kill(worker: Worker) -> None:
    worker.put(CONTENT)
    worker.delete(CONTENT)
    worker.kill()
    with sqlite3.connect(worker.store / "inventory.sqlite3") as db:
        db.execute("UPDATE objects SET unlink_at = 1")
    db.close()
    worker.start()
    worker.wait_until(lambda: not worker.file(CONTENT).exists())
    # The file is removed first, then its row.
    worker.wait_until(lambda: worker.metric("objects") == 0)


def test_a_second_worker_on_one_folder_is_refused(
    worker: Worker, workers: Callable[..., Worker]
) -> None:
    second = workers()
    second.store.symlink_to(worker.store)
    second.start(until_served=False)
    assert second.wait() == 1
    assert "folder_in_use" in second.log
    assert worker.health() == 200


def test_a_port_in_use_is_refused_with_a_message(
    worker: Worker, workers: Callable[..., Worker]
) -> None:
    second = workers(port=worker.port).start(until_served=False)
    assert second.wait() == 1
    assert "port_taken" in second.log
