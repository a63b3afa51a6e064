"""GET and HEAD return the bytes that the ticket allows, and nothing else."""

import pytest

from edgecache.protocol.names import NODE_HEADER, TICKET_HEADER, object_path
from tests.edgecache.crowds import FEW, answered_before
from tests.edgecache.worker.brain import NODE
from tests.edgecache.worker.running import Worker, name

CONTENT = bytes(range(256)) * 1024


@pytest.fixture(scope="module")
def holder(lasting: Worker) -> Worker:
    """Return a worker that holds CONTENT; tests do not change it."""
    assert lasting.put(CONTENT).status == 201
    return lasting


@pytest.fixture
def damaged(worker: Worker) -> Worker:
    """Return a worker that holds CONTENT; tests may damage its files."""
    assert worker.put(CONTENT).status == 201
    return worker


def test_a_stored_object_is_read(holder: Worker) -> None:
    answer = holder.get(CONTENT)
    assert (answer.status, answer.body) == (200, CONTENT)
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert answer.headers["etag"] == f'"{name(CONTENT).hex()}"'
    assert answer.headers[NODE_HEADER] == str(NODE)
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_head_returns_the_same_headers_without_a_body(holder: Worker) -> None:
    answer = holder.get(CONTENT, method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert answer.headers["etag"] == f'"{name(CONTENT).hex()}"'


def test_a_ticket_may_be_in_the_query(holder: Worker) -> None:
    ticket = holder.brain.signer.ticket(CONTENT)
    answer = holder.request("GET", f"{object_path(name(CONTENT))}?x=1&ticket={ticket}")
    assert (answer.status, answer.body) == (200, CONTENT)


def test_an_empty_object_is_stored_and_read(lasting: Worker) -> None:
    assert lasting.put(b"").status == 201
    answer = lasting.get(b"")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "0")
    assert lasting.get(b"", headers={"Range": "bytes=0-0"}).status == 416


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-9", 5, 10),
        ("bytes=262143-", 262143, 262144),
        ("bytes=0-262143", 0, 262144),
        ("bytes=100-99999999", 100, 262144),
        ("bytes=-1", 262143, 262144),
        ("bytes=-99999999", 0, 262144),
        ("bytes=131071-131073", 131071, 131074),
    ],
)
def test_a_range_returns_its_bytes(holder: Worker, header: str, start: int, end: int) -> None:
    answer = holder.get(CONTENT, headers={"Range": header})
    assert (answer.status, answer.body) == (206, CONTENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("header", ["bytes=262144-", "bytes=-0", "bytes=999999999-"])
def test_a_range_after_the_end_is_refused_with_the_size(holder: Worker, header: str) -> None:
    answer = holder.get(CONTENT, headers={"Range": header})
    assert answer.status == 416
    assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"


@pytest.mark.parametrize("header", ["bytes=9-5", "bytes=0-1,5-6", "lines=1-2", "bytes=x"])
def test_anything_but_a_single_range_returns_the_whole_object(holder: Worker, header: str) -> None:
    answer = holder.get(CONTENT, headers={"Range": header})
    assert (answer.status, answer.body) == (200, CONTENT)


def test_conditional_requests_compare_the_hash(holder: Worker) -> None:
    etag = f'"{name(CONTENT).hex()}"'
    assert holder.get(CONTENT, headers={"If-None-Match": etag}).status == 304
    assert holder.get(CONTENT, headers={"If-None-Match": f'"x", W/{etag}'}).status == 304
    assert holder.get(CONTENT, headers={"If-None-Match": '"x"'}).status == 200
    ranged = {"Range": "bytes=0-0"}
    assert holder.get(CONTENT, headers={**ranged, "If-Range": etag}).status == 206
    assert holder.get(CONTENT, headers={**ranged, "If-Range": '"x"'}).status == 200


def test_an_absent_object_is_404(holder: Worker) -> None:
    before = holder.metric("misses_total")
    assert holder.get(b"something else").status == 404
    assert holder.metric("misses_total") == before + 1


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/o",
        "/o/",
        "/o/abc",
        f"/o/{'A' * 64}",
        "/o/%2e%2e/lock",
        "/o/../lock",
        "/objects",
        "/x",
    ],
)
def test_an_unknown_path_is_404_in_json(lasting: Worker, path: str) -> None:
    answer = lasting.request("GET", path)
    assert answer.status == 404
    assert b'"not_found"' in answer.body


def test_other_methods_are_refused(lasting: Worker) -> None:
    path = object_path(name(CONTENT))
    for method in ("POST", "PATCH", "OPTIONS", "TRACE"):
        answer = lasting.request(method, path)
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD, PUT, DELETE"
    assert lasting.request("POST", "/healthz").status == 405


def test_a_file_that_disappeared_is_404_and_reported(damaged: Worker) -> None:
    damaged.brain.wait_for(lambda: name(CONTENT) in damaged.brain.held())
    damaged.file(CONTENT).unlink()
    assert damaged.get(CONTENT).status == 404
    damaged.brain.wait_for(lambda: name(CONTENT) not in damaged.brain.held())
    assert damaged.put(CONTENT).status == 201
    assert damaged.get(CONTENT).body == CONTENT


def test_a_file_of_the_wrong_length_is_not_served(damaged: Worker) -> None:
    with damaged.file(CONTENT).open("ab") as file:
        file.write(b"x")
    assert damaged.get(CONTENT).status == 404
    damaged.wait_until(lambda: not damaged.file(CONTENT).exists())
    assert damaged.put(CONTENT).status == 201
    damaged.file(CONTENT).write_bytes(CONTENT[:-1])
    assert damaged.get(CONTENT).status == 404
    damaged.wait_until(lambda: not damaged.file(CONTENT).exists())


def test_a_symbolic_link_is_not_followed(damaged: Worker) -> None:
    secret = damaged.folder / "secret"
    damaged.file(CONTENT).unlink()
    damaged.file(CONTENT).symlink_to(secret)
    assert damaged.get(CONTENT).status == 404
    assert secret.exists()


def test_a_connection_serves_many_requests(holder: Worker) -> None:
    ticket = holder.brain.signer.ticket(CONTENT)
    for _ in range(50):
        assert holder.show(ticket, CONTENT, {TICKET_HEADER: ticket}).body == CONTENT


def test_a_crowd_of_one_organization_is_not_ahead_of_another(holder: Worker) -> None:
    def asked(organization_id: int) -> bytes:
        ticket = holder.brain.signer.ticket(CONTENT, organization_id=organization_id)
        lines = [
            f"HEAD {object_path(name(CONTENT))} HTTP/1.1",
            "Host: worker",
            f"{TICKET_HEADER}: {ticket}",
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    assert answered_before(holder.port, asked(2), crowd=asked(1)) < FEW
