"""Jobs: delete a blob, or fetch it from another worker and verify its bytes."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest
from msgspec.structs import replace

from edgecache.protocol.jobs import Job, JobDone, JobKind, JobSource
from edgecache.protocol.tickets import TicketKind
from edgecache.worker.sync.jobs import BEGIN_S, MAX_CONCURRENT_JOBS
from tests.edgecache.worker.brain import FakeBrain
from tests.edgecache.worker.running import Worker, altered, name
from tests.ports import free_port

pytestmark = pytest.mark.slow

CONTENT = os.urandom(2_500_000)


@pytest.fixture
def source(brain: FakeBrain, workers: Callable[..., Worker]) -> Iterator[Worker]:
    """Return another worker that holds CONTENT; its own brain has the same key."""
    other = FakeBrain()
    other.signer = brain.signer
    worker = workers(brain=other).start()
    worker.put(CONTENT)
    yield worker
    other.close()


class BadSource:
    """A server that replaces a worker and sends the same response on every connection.

    gate: it does not respond before.
    drips: it sends a byte every second after that.
    """

    def __init__(
        self, answer: bytes, gate: threading.Event | None = None, *, drips: bool = False
    ) -> None:
        """Listen."""
        self._answer = answer
        self._gate = gate
        self._drips = drips
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.asked = 0
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def offer(self) -> JobSource:
        """Return it as a source."""
        return JobSource(f"http://127.0.0.1:{self._listener.getsockname()[1]}", "t" * 300)

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            self.asked += 1
            # A worker that refuses the head hangs up.
            with client, suppress(ConnectionError):
                client.recv(65_536)
                if self._gate is not None:
                    self._gate.wait(20)
                client.sendall(self._answer)
                while self._drips:
                    client.sendall(b"x")
                    time.sleep(1)


def whole(body: bytes, length: int | None = None, status: str = "200 OK") -> bytes:
    """Return the bytes of a response."""
    said = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {said}\r\n\r\n".encode() + body


def offer(worker: Worker) -> JobSource:
    """Return a worker as a source of CONTENT."""
    ticket = worker.brain.signer.ticket(CONTENT, kind=TicketKind.REPLICATE)
    return JobSource(f"http://127.0.0.1:{worker.port}", ticket)


def copy_from(*sources: JobSource, job_id: int = 7, size: int = len(CONTENT)) -> Job:
    """Return a job to fetch CONTENT."""
    return Job(job_id, JobKind.REPLICATE, name(CONTENT), size, sources)


def give(brain: FakeBrain, job: Job) -> JobDone:
    """Run a job; return its result."""
    brain.jobs = [job]
    brain.wait_for(lambda: job.id in brain.done)
    return brain.done[job.id]


def test_a_blob_is_fetched_from_another_worker(source: Worker, worker: Worker) -> None:
    assert give(worker.brain, copy_from(offer(source))) == JobDone(7, ok=True)
    assert worker.get(CONTENT).body == CONTENT
    worker.brain.wait_for(lambda: name(CONTENT) in worker.brain.held())
    assert worker.metric("stores_total") == 1


def test_a_blob_that_is_present_is_not_fetched(worker: Worker) -> None:
    worker.put(CONTENT)
    bad = BadSource(whole(CONTENT))
    assert give(worker.brain, copy_from(bad.offer)).ok
    assert bad.asked == 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (whole(altered(CONTENT)), "wrong_bytes"),
        (whole(CONTENT + b"more"), "wrong_length"),
        (whole(CONTENT[:1000]), "wrong_length"),
        (whole(CONTENT[:1000], len(CONTENT)), "closed"),
        (whole(b"", status="404 Not Found"), "status_404"),
        (whole(b"", status="302 Found\r\nLocation: http://127.0.0.1:1/"), "status_302"),
        (b"garbage\r\n\r\n", "no_answer"),
        (b"", "closed"),
    ],
)
def test_a_source_with_wrong_bytes_or_an_error_leaves_nothing(
    lasting: Worker, answer: bytes, error: str
) -> None:
    # A job is done once: each has its own number.
    job = copy_from(BadSource(answer).offer, job_id=len(lasting.brain.done) + 1)
    assert give(lasting.brain, job) == JobDone(job.id, ok=False, error=error)
    assert lasting.get(CONTENT).status == 404
    assert lasting.incoming() == []
    assert lasting.metric("used_bytes") == 0


def test_the_next_source_is_tried_after_a_failure(source: Worker, worker: Worker) -> None:
    gone = JobSource(f"http://127.0.0.1:{free_port()}", "t" * 300)
    liar = BadSource(whole(altered(CONTENT))).offer
    assert give(worker.brain, copy_from(gone, liar, offer(source))).ok
    assert worker.get(CONTENT).body == CONTENT


def test_a_source_of_another_operator_must_have_a_public_address(
    source: Worker, worker: Worker
) -> None:
    inside = replace(offer(source), is_guarded=True)
    assert give(worker.brain, copy_from(inside)) == JobDone(7, ok=False, error="address_forbidden")


def test_a_job_without_a_source_or_space_reports_its_failure(
    brain: FakeBrain, workers: Callable[..., Worker]
) -> None:
    worker = workers(capacity="1MiB").start()
    assert give(brain, copy_from()) == JobDone(7, ok=False, error="no_source")
    bad = BadSource(whole(CONTENT))
    assert give(brain, copy_from(bad.offer, job_id=8)) == JobDone(8, ok=False, error="store_full")
    assert worker.health() == 200


def test_a_deletion_is_reported_immediately(worker: Worker) -> None:
    worker.put(CONTENT)
    worker.brain.wait_for(lambda: name(CONTENT) in worker.brain.held())
    assert give(worker.brain, Job(9, JobKind.DELETE, name(CONTENT), 0)).ok
    worker.brain.wait_for(lambda: name(CONTENT) not in worker.brain.held())
    assert give(worker.brain, Job(10, JobKind.DELETE, name(b"absent"), 0)).ok


def test_all_of_many_jobs_are_done_and_reported_together(worker: Worker) -> None:
    worker.brain.jobs = [Job(number, JobKind.DELETE, bytes(32), 0) for number in range(100)]
    worker.brain.wait_for(lambda: len(worker.brain.done) == 100)
    assert len(worker.brain.reports) < 50


def test_a_slow_job_does_not_hold_up_the_report_of_others(worker: Worker) -> None:
    gate = threading.Event()
    slow = BadSource(whole(CONTENT), gate)
    deletion = Job(8, JobKind.DELETE, name(b"absent"), 0)
    worker.brain.jobs = [copy_from(slow.offer), deletion]
    try:
        worker.brain.wait_for(lambda: 8 in worker.brain.done)
        assert 7 not in worker.brain.done
    finally:
        gate.set()
    worker.brain.wait_for(lambda: 7 in worker.brain.done)
    assert worker.brain.done[7].ok


def test_a_deletion_that_the_disk_refuses_is_reported_as_failed(worker: Worker) -> None:
    worker.put(CONTENT)
    with closing(sqlite3.connect(worker.store / "inventory.sqlite3")) as db:
        db.execute(
            "CREATE TRIGGER broken BEFORE UPDATE ON objects BEGIN SELECT RAISE(FAIL, ''); END"
        )
        db.commit()
        done = give(worker.brain, Job(9, JobKind.DELETE, name(CONTENT), 0))
        assert (done.ok, done.error) == (False, "disk_failing")
        assert worker.get(CONTENT).body == CONTENT


def test_a_file_that_is_wrong_is_removed_when_the_brain_suspects_it(worker: Worker) -> None:
    job = Job(11, JobKind.VERIFY, name(CONTENT), len(CONTENT))
    worker.put(CONTENT)
    assert give(worker.brain, job).ok
    assert worker.get(CONTENT).body == CONTENT
    file = worker.file(CONTENT)
    file.chmod(0o600)
    file.write_bytes(altered(CONTENT))

    assert give(worker.brain, replace(job, id=12)).ok

    assert not file.exists()
    worker.brain.wait_for(lambda: name(CONTENT) not in worker.brain.held())


def test_sources_that_drip_hold_up_no_other_jobs_for_long(worker: Worker) -> None:
    worker.put(b"mine")
    drips = [BadSource(whole(b"", 1000), drips=True) for _ in range(MAX_CONCURRENT_JOBS)]
    worker.brain.jobs = [
        Job(place, JobKind.REPLICATE, name(b"%d" % place), 1000, (drip.offer,))
        for place, drip in enumerate(drips, 1)
    ] + [Job(9, JobKind.DELETE, name(b"mine"), 4)]

    worker.brain.wait_for(lambda: 9 in worker.brain.done, timeout_s=BEGIN_S + 5)

    assert worker.brain.done[1] == JobDone(1, ok=False, error="too_slow")
    assert worker.incoming() == []
