"""Which requests the Python client sends again."""

import pytest

import zonal
from tests.clients.front import Front
from tests.ports import free_port

INSERT = "INSERT INTO written VALUES (1)"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zonal.retries.FIRST_PAUSE_S", 0.001)


def test_what_the_platform_did_not_run_is_sent_again(client: zonal.Client, front: Front) -> None:
    client.sql.query("CREATE TABLE IF NOT EXISTS written (n int); TRUNCATE written")
    front.seen.clear()
    front.refuse(429, "too_many_queries", Retry_After="0")
    front.refuse(503, "sql_busy", Retry_After="0")
    client.sql.query(INSERT)
    assert len(front.seen) == 3
    front.refuse(429, "too_many_queries", Retry_After="0")
    with client.sql.stream("SELECT n FROM written") as rows:
        assert list(rows) == [{"n": 1}]


def test_the_platform_is_given_up_after_some_attempts(client: zonal.Client, front: Front) -> None:
    for _ in range(5):
        front.refuse(429, "too_many_requests", Retry_After="0")
    with pytest.raises(zonal.RateLimitError) as caught:
        client.whoami()
    assert caught.value.retry_after_s == 0
    assert len(front.seen) == 4
    front.faults.clear()


def test_a_long_pause_is_left_to_the_caller(client: zonal.Client, front: Front) -> None:
    front.refuse(429, "too_many_requests", Retry_After="3600")
    with pytest.raises(zonal.RateLimitError) as caught:
        client.whoami()
    assert caught.value.retry_after_s == 3600
    assert caught.value.is_retryable
    assert len(front.seen) == 1


def test_a_write_whose_answer_was_lost_is_not_repeated(client: zonal.Client, front: Front) -> None:
    client.sql.query("CREATE TABLE IF NOT EXISTS lost (n int); TRUNCATE lost")
    front.lose()
    with pytest.raises(zonal.ConnectionFailedError, match="did not answer"):
        client.sql.query("INSERT INTO lost VALUES (1)")
    front.answer(503, b"<html>", Retry_After="0")
    with pytest.raises(zonal.ServerError, match="http_503"):
        client.sql.query("INSERT INTO lost VALUES (2)")
    assert client.sql.query("SELECT n FROM lost", rows="arrays").rows == [[1]]


def test_a_write_with_an_idempotency_key_is_repeated_and_happens_once(
    client: zonal.Client, front: Front
) -> None:
    client.sql.query("CREATE TABLE IF NOT EXISTS once (n int); TRUNCATE once")
    front.seen.clear()
    front.lose()
    answer = client.sql.query("INSERT INTO once VALUES (1)", idempotency_key="once-1")
    assert answer.row_count == 1
    assert front.seen == [("POST", "/v1/sql")] * 2
    front.answer(502, b"<html>bad gateway</html>")
    client.sql.batch(["INSERT INTO once VALUES (2)"], idempotency_key="once-2")
    assert client.sql.query("SELECT n FROM once", rows="arrays").rows == [[1], [2]]


def test_reading_is_repeated(client: zonal.Client, front: Front) -> None:
    for _ in range(2):
        front.lose()
    # Other tests of this platform create more.
    assert {"live", "sandbox"} <= {each.id for each in client.environments.list()}
    front.lose()
    assert client.sql.query("SELECT 1 AS n", read_only=True).rows == [{"n": 1}]
    front.answer(504, b"")
    assert client.whoami().email


def test_a_platform_that_is_not_there_is_a_failed_connection() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with (
        zonal.Client(url, token="token", retries=zonal.Retries(most=1)) as client,
        pytest.raises(zonal.ConnectionFailedError, match=url),
    ):
        client.sql.query("SELECT 1")


def test_an_answer_of_something_else_is_said_to_be_one(client: zonal.Client, front: Front) -> None:
    front.answer(200, b"<html>Please sign in to the network</html>")
    with pytest.raises(zonal.UnexpectedAnswerError, match="is it the platform"):
        client.whoami()
    front.answer(200, b'{"hello": "world"}')
    with pytest.raises(zonal.UnexpectedAnswerError, match="Whoami"):
        client.whoami()


def test_a_request_to_a_machine_that_has_not_the_transaction_is_sent_again(
    client: zonal.Client, front: Front
) -> None:
    with client.sql.transaction() as ours:
        front.seen.clear()
        front.refuse(409, "transaction_elsewhere")
        assert ours.query("SELECT 1 AS n").rows == [{"n": 1}]
        assert len(front.seen) == 2
        front.refuse(409, "transaction_elsewhere")
    assert [path.rpartition("/")[2] for _, path in front.seen[2:]] == ["commit", "commit"]
