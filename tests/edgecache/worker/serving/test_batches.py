"""Many small objects in one message: all of them are kept or none."""

import os
from collections.abc import Callable
from typing import Any

from edgecache.protocol import batches
from edgecache.protocol.names import TICKET_HEADER
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.worker.running import Answer, Worker, altered, name


def post(worker: Worker, message: bytes, index: bytes, **fields: Any) -> Answer:
    """Send a batch with a ticket."""
    wanted: dict[str, Any] = {
        "kind": TicketKind.STORE_BATCH,
        "sha256": batches.name_of(index),
        "length": 1,
    }
    ticket = worker.brain.signer.ticket(**(wanted | fields))
    return worker.request("POST", batches.BATCH_PATH, message, {TICKET_HEADER: ticket})


def encoded(contents: list[bytes]) -> tuple[bytes, bytes]:
    """Return the index and the message of some objects."""
    return batches.encode({name(content): content for content in contents})


def test_the_objects_of_a_batch_are_kept(lasting: Worker) -> None:
    contents = [os.urandom(size) for size in (1, 100, 70_000)]
    lasting.put(contents[0])
    index, message = encoded(contents)

    assert post(lasting, message, index).status == 201
    assert post(lasting, message, index).status == 200

    for content in contents:
        assert lasting.get(content).body == content
    assert lasting.incoming() == []


def test_one_wrong_object_spoils_a_batch(lasting: Worker) -> None:
    right, wrong = os.urandom(100), os.urandom(100)
    index, message = encoded([right, wrong])

    answer = post(lasting, message[:-100] + altered(wrong), index)

    assert answer.status == 422
    assert {lasting.get(content).status for content in (right, wrong)} == {404}
    assert lasting.incoming() == []


def test_a_ticket_is_for_one_batch(lasting: Worker) -> None:
    index, message = encoded([os.urandom(100)])
    other, _ = encoded([os.urandom(100)])

    assert post(lasting, message, other).status == 403
    assert post(lasting, message, index, kind=TicketKind.STORE).status == 403
    assert post(lasting, message, index, issued_at=1).status == 403
    assert lasting.request("POST", batches.BATCH_PATH, message).status == 403
    assert post(lasting, b"x" * 100, index).status == 400
    assert lasting.request("GET", batches.BATCH_PATH).status == 405


def test_a_batch_that_is_too_large_is_refused_unread(lasting: Worker) -> None:
    index, _ = encoded([b"x"])

    assert post(lasting, b"x" * (batches.MESSAGE_BYTES + 1), index).status == 413


def test_a_full_worker_keeps_nothing_of_a_batch(workers: Callable[..., Worker]) -> None:
    worker = workers(capacity="1MiB").start()
    # A little more than whole blocks of the disk.
    contents = [os.urandom(16_385) for _ in range(63)]
    index, message = encoded(contents)

    assert post(worker, message, index).status == 507

    assert {worker.get(content).status for content in contents} == {404}
    assert worker.incoming() == []
    index, message = encoded(contents[:2])
    assert post(worker, message, index).status == 201
