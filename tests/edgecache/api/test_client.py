"""The brain's client: slow, unavailable and malformed responses, and the circuit breaker."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from pytest_django import Settings

from common.errors import InvalidRequest, NotFound
from edgecache.api import client
from edgecache.api.client import CircuitBreaker
from edgecache.api.errors import BucketTaken, CacheUnavailable, NodeNotFound
from tests.edgecache.api.brain import STATUS, ScriptedBrain
from tests.ports import free_port


def test_a_call_sends_the_secret_and_returns_the_response(brain: ScriptedBrain) -> None:
    assert client.call("GET", "/v1/status") == STATUS


def test_a_refusal_of_the_brain_keeps_its_status_and_code(brain: ScriptedBrain) -> None:
    brain.say("GET /v1/nodes/1", 404, {"code": "node_not_found"})
    with pytest.raises(NodeNotFound):
        client.call("GET", "/v1/nodes/1")
    brain.say("POST /v1/buckets", 409, {"code": "bucket_taken"})
    with pytest.raises(BucketTaken):
        client.call("POST", "/v1/buckets", body={})
    with pytest.raises(NotFound):
        client.call("GET", "/v1/nowhere")
    row = {"field": "region", "code": "invalid", "message": "There is no such region."}
    brain.say("POST /v1/nodes", 400, {"code": "invalid", "errors": [row]})
    with pytest.raises(InvalidRequest) as caught:
        client.call("POST", "/v1/nodes", body={})
    assert [field.as_json() for field in caught.value.fields] == [row]


@pytest.mark.parametrize(
    ("status", "said"),
    [(500, {}), (503, {"code": "unavailable"}), (401, {}), (200, b"<html>"), (302, {})],
)
def test_a_malformed_response_is_unavailable(
    brain: ScriptedBrain, status: int, said: object
) -> None:
    brain.say("GET /v1/status", status, said)
    with pytest.raises(CacheUnavailable):
        client.call("GET", "/v1/status")


def test_a_wrong_secret_is_unavailable_and_not_a_401_for_the_caller(brain: ScriptedBrain) -> None:
    client._session().headers["Authorization"] = "Bearer wrong"
    with pytest.raises(CacheUnavailable):
        client.call("GET", "/v1/status")


def test_calls_to_a_dead_brain_fail_immediately_after_the_first(brain: ScriptedBrain) -> None:
    brain.gate.clear()
    with pytest.raises(CacheUnavailable):
        client.call("POST", "/v1/purge", body={})
    number = len(brain.calls)
    for _ in range(100):
        with pytest.raises(CacheUnavailable) as caught:
            client.call("GET", "/v1/status")
        assert caught.value.retry_after_s
    # None of the hundred calls was sent, so that none waited.
    assert len(brain.calls) == number


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_write_is_sent_once(brain: ScriptedBrain, method: str) -> None:
    brain.gate.clear()
    with pytest.raises(CacheUnavailable):
        client.call(method, "/v1/nodes")
    assert len(brain.calls) == 1


def test_one_call_per_pause_tries_again_and_a_success_closes_the_breaker() -> None:
    now = [0.0]
    breaker = CircuitBreaker(lambda: now[0])
    assert breaker.allows_call()
    breaker.failed()
    assert not breaker.allows_call()
    now[0] = 1.0
    assert breaker.allows_call()
    assert not breaker.allows_call()
    breaker.failed()
    now[0] = 2.5
    assert not breaker.allows_call()
    now[0] = 3.0
    assert breaker.allows_call()
    breaker.succeeded()
    assert all(breaker.allows_call() for _ in range(3))


def test_one_of_many_threads_tries_again() -> None:
    now = [0.0]
    breaker = CircuitBreaker(lambda: now[0])
    breaker.failed()
    now[0] = 5.0
    admitted: list[bool] = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        admitted.append(breaker.allows_call())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert admitted.count(True) == 1


def test_the_pause_ends_within_seconds_and_is_the_one_that_callers_are_told() -> None:
    now = [0.0]
    breaker = CircuitBreaker(lambda: now[0])
    for _ in range(20):
        breaker.failed()
    now[0] = 0.4
    wait_s = breaker.retry_after_s()
    assert wait_s <= 5
    now[0] += wait_s
    assert breaker.allows_call()


def test_calls_that_wait_for_one_hung_brain_are_one_failure(brain: ScriptedBrain) -> None:
    brain.gate.clear()
    waits: list[int] = []

    def ask() -> None:
        with pytest.raises(CacheUnavailable) as caught:
            client.call("GET", "/v1/status")
        waits.append(caught.value.retry_after_s or 0)

    with ThreadPoolExecutor(20) as pool:
        for done in [pool.submit(ask) for _ in range(20)]:
            done.result()
    # The first pause, not one that doubled.
    assert max(waits) == 1
    # None was sent twice.
    assert len(brain.calls) <= 20


def test_a_cut_connection_does_not_open_the_breaker(brain: ScriptedBrain) -> None:
    brain.cuts = 1
    with pytest.raises(CacheUnavailable) as caught:
        client.call("POST", "/v1/purge", body={})
    assert "whether the change was made is unknown" in caught.value.detail
    assert caught.value.retry_after_s is None
    assert client.call("GET", "/v1/status") == STATUS


def test_a_read_whose_connection_was_cut_is_sent_once_more(brain: ScriptedBrain) -> None:
    brain.cuts = 1
    assert client.call("GET", "/v1/status") == STATUS
    assert len(brain.calls) == 2
    brain.cuts = 2
    with pytest.raises(CacheUnavailable) as caught:
        client.call("GET", "/v1/status")
    assert not caught.value.detail
    # Cut on two connections: nothing is sent for a while.
    number = len(brain.calls)
    with pytest.raises(CacheUnavailable):
        client.call("GET", "/v1/status")
    assert len(brain.calls) == number


def test_a_write_that_was_not_sent_is_not_said_to_be_unknown(settings: Settings) -> None:
    settings.CACHE = replace(settings.CACHE, brain_url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(CacheUnavailable) as caught:
        client.call("POST", "/v1/purge", body={})
    assert not caught.value.detail


def test_the_probe_at_startup_never_raises(
    brain: ScriptedBrain, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.probe()
    brain.say("GET /health", 503, {})
    assert not client.probe()
