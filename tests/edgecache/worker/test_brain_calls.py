"""The worker continues while the brain is unavailable, slow, wrong or has removed the node."""

import json
import os
import signal
import time
from collections.abc import Callable

import pytest

from edgecache.protocol.credentials import authorization, proof, secret_hash
from edgecache.worker.sync import heartbeat
from tests.edgecache.worker.brain import NODE, SECRET, FakeBrain
from tests.edgecache.worker.running import Answer, Worker, name

pytestmark = pytest.mark.slow

CONTENT = os.urandom(200_000)


def test_a_heartbeat_contains_the_worker_s_state(brain: FakeBrain, worker: Worker) -> None:
    worker.put(CONTENT)
    brain.wait_for(lambda: brain.beats[-1].object_count == 1)
    beat = brain.wait_for_beat()
    assert beat.capacity_bytes == 64 << 20
    assert beat.used_bytes == 49 * 4096
    assert (beat.evictions, beat.problems, beat.endpoint) == (0, (), None)
    assert 0 <= beat.load <= 1
    sequences = [row.sequence for row in brain.beats]
    assert sequences == sorted(set(sequences))
    assert len({row.incarnation for row in brain.beats}) == 1
    worker.kill()
    worker.start()
    assert brain.wait_for_beat().incarnation != beat.incarnation


def test_a_configured_endpoint_is_reported(workers: Callable[..., Worker]) -> None:
    worker = workers("--endpoint", "https://cache1.example.com:9100/").start()
    assert worker.brain.beats[-1].endpoint == "https://cache1.example.com:9100"


def fail_twice(worker: Worker) -> None:
    """Wait until two more heartbeats have failed; the worker serves, and says what it knows."""
    failed = worker.metric("heartbeats_failed_total")
    worker.wait_until(lambda: worker.metric("heartbeats_failed_total") >= failed + 2)
    assert worker.get(CONTENT).body == CONTENT
    assert worker.health() == 200
    assert worker.metric("brain_up") == 0


def test_tickets_work_while_the_brain_fails(brain: FakeBrain, worker: Worker) -> None:
    worker.put(CONTENT)
    for status in (500, 503, 429, 400, 401):
        brain.http_status = status
        fail_twice(worker)
        brain.http_status = 200
        worker.wait_until(lambda: worker.metric("brain_up") == 1)


def test_a_stalled_brain_does_not_delay_clients(brain: FakeBrain, worker: Worker) -> None:
    worker.put(CONTENT)
    brain.may_answer.clear()
    began = time.monotonic()
    for _ in range(20):
        assert worker.get(CONTENT).body == CONTENT
        assert worker.put(os.urandom(1000)).status == 201
    assert time.monotonic() - began < 9
    brain.may_answer.set()
    brain.wait_for(lambda: len(brain.held()) == 21)


def test_changes_are_reported_to_a_brain_that_comes_back(brain: FakeBrain, worker: Worker) -> None:
    brain.http_status = 503
    worker.wait_until(lambda: worker.metric("brain_up") == 0)
    worker.put(CONTENT)
    assert name(CONTENT) not in brain.held()
    brain.http_status = 200
    brain.wait_for(lambda: name(CONTENT) in brain.held())


def test_a_closed_keep_alive_connection_is_opened_again(brain: FakeBrain, worker: Worker) -> None:
    brain.drops_connections = True
    worker.put(CONTENT)
    for _ in range(5):
        brain.wait_for_beat()
    brain.wait_for(lambda: name(CONTENT) in brain.held())
    assert worker.metric("heartbeats_failed_total") == 0


def test_invalid_responses_of_the_brain_count_as_unavailable(
    brain: FakeBrain, worker: Worker
) -> None:
    worker.put(CONTENT)
    endless = b'"' + b"x" * (2 << 20) + b'"'
    for garbage in (b"", b"<html>", b"[]", b"{}", b'{"now": "noon"}', endless):
        brain.garbage = garbage
        fail_twice(worker)
        brain.garbage = None
        worker.wait_until(lambda: worker.metric("brain_up") == 1)


def test_an_absent_brain_is_logged(brain: FakeBrain, workers: Callable[..., Worker]) -> None:
    worker = workers()
    brain.close()
    worker.start(until_served=False)
    worker.wait_until(lambda: "brain_away" in worker.log)
    assert "refused" in worker.log
    assert worker.health() == 503


def test_retry_delays_grow_and_vary(brain: FakeBrain, worker: Worker) -> None:
    brain.http_status = 503
    seen = brain.requests
    began = time.monotonic()
    worker.wait_until(lambda: worker.metric("heartbeats_failed_total") >= 4)
    assert time.monotonic() - began > 0.25 + 0.5 + 1.0
    assert brain.requests - seen < 30


def test_retry_delays_stay_below_what_a_brain_s_return_may_take() -> None:
    backoff = heartbeat.Backoff()
    assert max(backoff.next_s() for _ in range(50)) <= 5


def test_a_removed_node_serves_nothing_and_logs_it(brain: FakeBrain, worker: Worker) -> None:
    worker.put(CONTENT)
    brain.http_status = 410
    worker.wait_until(lambda: worker.health() == 503)
    answer = worker.get(CONTENT)
    assert (answer.status, b"node_removed" in answer.body) == (410, True)
    assert worker.put(b"new").status == 410
    assert worker.delete(CONTENT).status == 410
    assert b"removed" in worker.request("GET", "/healthz").body
    assert "node_removed" in worker.log
    seen = brain.requests
    brain.http_status = 200
    ends = time.monotonic() + 10 * brain.interval_s
    while time.monotonic() < ends:
        assert worker.get(CONTENT).status == 410
    assert brain.requests == seen
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_full_inventory_is_sent_in_pages_on_request(
    brain: FakeBrain, workers: Callable[..., Worker]
) -> None:
    worker = workers()
    contents = [b"%d" % number for number in range(2500)]
    (worker.store / "objects").mkdir(parents=True)
    for content in contents:
        worker.file(content).parent.mkdir(exist_ok=True)
        worker.file(content).write_bytes(content)
    worker.start()
    worker.wait_until(lambda: worker.metric("objects") == 2500)
    brain.wait_for(lambda: len(brain.held()) == 2500)
    brain.inventories.clear()
    brain.wants_inventory = True
    brain.wait_for(lambda: any(page.full and page.last for page in brain.inventories))
    pages = [page for page in brain.inventories if page.full]
    assert [len(page.added) for page in pages] == [1000, 1000, 500]
    assert [(page.page, page.last) for page in pages] == [(0, False), (1, False), (2, True)]
    assert brain.held() == {name(content): len(content) for content in contents}


def test_blobs_unknown_to_the_brain_are_deleted(brain: FakeBrain, worker: Worker) -> None:
    worker.put(CONTENT)
    worker.put(b"kept")
    brain.wait_for(lambda: len(brain.held()) == 2)
    brain.unknown = {name(CONTENT)}
    brain.wants_inventory = True
    brain.wait_for(lambda: set(brain.held()) == {name(b"kept")})
    assert worker.get(b"kept").status == 200


def test_a_stopping_worker_notifies_the_brain_and_finishes_its_requests(
    brain: FakeBrain, workers: Callable[..., Worker]
) -> None:
    worker = workers("--linger", "1").start()
    worker.put(CONTENT)
    worker.send(signal.SIGTERM)
    brain.wait_for(lambda: brain.beats[-1].problems == ("draining",))
    assert worker.get(CONTENT).body == CONTENT
    refused = worker.put(b"new")
    assert (refused.status, b"draining" in refused.body) == (503, True)
    assert worker.health() == 503
    assert worker.wait() == 0
    assert "stopped" in worker.log


def test_a_second_interrupt_stops_immediately_but_a_sigterm_does_not(
    brain: FakeBrain, workers: Callable[..., Worker]
) -> None:
    worker = workers("--linger", "600").start()
    worker.send(signal.SIGINT)
    brain.wait_for(lambda: brain.beats[-1].problems == ("draining",))
    worker.send(signal.SIGTERM)
    assert worker.health() == 503
    worker.send(signal.SIGINT)
    assert worker.wait() == 1


def test_stopping_without_a_brain_is_quick(brain: FakeBrain, worker: Worker) -> None:
    brain.may_answer.clear()
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert time.monotonic() - began < 10


def prove(worker: Worker, nonce: str) -> Answer:
    """Request a proof of the secret."""
    return worker.request("GET", f"/prove?nonce={nonce}")


def test_the_endpoint_proves_knowledge_of_the_secret(worker: Worker) -> None:
    nonce = "n0nce_-" * 4
    answer = prove(worker, nonce)
    assert json.loads(answer.body) == {"proof": proof(secret_hash(SECRET), NODE, nonce)}
    assert prove(worker, "short").status == 400
    assert prove(worker, "n" * 129).status == 400
    assert worker.request("GET", "/prove").status == 400


def test_metrics_require_loopback_or_the_credential(worker: Worker) -> None:
    assert worker.request("GET", "/metrics").status == 200
    through = {"X-Forwarded-For": "203.0.113.5"}
    assert worker.request("GET", "/metrics", headers=through).status == 403
    known = {**through, "Authorization": authorization(NODE, SECRET)}
    assert worker.request("GET", "/metrics", headers=known).status == 200
    wrong = {**through, "Authorization": authorization(NODE, SECRET + "x")}
    assert worker.request("GET", "/metrics", headers=wrong).status == 403


def test_a_worker_with_a_wrong_secret_logs_it_and_serves_nothing(
    workers: Callable[..., Worker],
) -> None:
    worker = workers(secret="another_secret_of_the_same_form").start(until_served=False)
    worker.wait_until(lambda: "credential_refused" in worker.log)
    assert worker.health() == 503
    assert worker.get(CONTENT).status == 503
