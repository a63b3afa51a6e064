"""A worker accepts tickets of its brain for itself, this blob and the current time only."""

import hashlib
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.worker.brain import FakeBrain, Signer
from tests.edgecache.worker.running import Worker, name

CONTENT = b"what is held" * 1000


@pytest.fixture(scope="module")
def holder(lasting: Worker) -> Worker:
    """Return a worker that holds CONTENT, with a brain that does not change."""
    assert lasting.put(CONTENT).status == 201
    return lasting


def code_of(answer: Any) -> str:
    """Return the status and error code of a refusal."""
    return f"{answer.status} {answer.body.decode().partition('code')[2][4:].partition(chr(34))[0]}"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"node_id": UUID(int=7)}, "403 ticket_of_another_node"),
        ({"sha256": hashlib.sha256(b"other").digest()}, "403 ticket_of_another_object"),
        ({"kind": TicketKind.STORE}, "403 ticket_of_another_kind"),
        ({"kind": TicketKind.DELETE}, "403 ticket_of_another_kind"),
        ({"length": len(CONTENT) - 1}, "403 ticket_range_exceeded"),
        ({"start": 1, "length": len(CONTENT)}, "403 ticket_range_exceeded"),
        ({"key_id": "00" * 8}, "403 ticket_key_unknown"),
    ],
)
def test_a_ticket_for_another_node_blob_or_operation_is_refused(
    holder: Worker, fields: dict[str, Any], code: str
) -> None:
    assert code_of(holder.get(CONTENT, **fields)) == code


@pytest.mark.parametrize(
    ("issued", "expires", "code"),
    [
        (-31, -1, "403 ticket_expired"),
        (60, 90, "403 ticket_not_yet_valid"),
        (0, 31, "403 ticket_lives_too_long"),
        (0, 86_400, "403 ticket_lives_too_long"),
    ],
)
def test_an_expired_or_future_ticket_is_refused(
    holder: Worker, issued: int, expires: int, code: str
) -> None:
    now = int(time.time())
    answer = holder.get(CONTENT, issued_at=now + issued, expires_at=now + expires)
    assert code_of(answer) == code


def test_a_ticket_signed_with_another_key_is_refused(holder: Worker) -> None:
    forger = Signer()
    forged = forger.ticket(CONTENT, key_id=holder.brain.signer.ticket_key.kid)
    assert code_of(holder.show(forged, CONTENT)) == "403 ticket_signature_wrong"
    assert code_of(holder.show(forger.ticket(CONTENT), CONTENT)) == "403 ticket_key_unknown"


def test_an_altered_ticket_is_refused_even_after_the_original_was_accepted(holder: Worker) -> None:
    ticket = holder.direct_ticket(CONTENT)
    assert holder.show(ticket, CONTENT).status == 200
    # The last ones are in the signature and in the MAC.
    for place in (0, 1, 20, 60, 100, 150, 200, 250, len(ticket) - 20, len(ticket) - 2):
        altered = ticket[:place] + ("A" if ticket[place] != "A" else "B") + ticket[place + 1 :]
        assert holder.show(altered, CONTENT).status == 403, place


@pytest.mark.parametrize("ticket", ["x", "A" * 300, "=" * 250, "A" * 10_000, "' OR 1=1 --"])
def test_a_malformed_ticket_is_refused(holder: Worker, ticket: str) -> None:
    assert code_of(holder.show(ticket, CONTENT)) == "403 ticket_malformed"


def test_a_request_without_a_ticket_is_refused(holder: Worker) -> None:
    path = object_path(name(CONTENT))
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert holder.request(method, path).status == 403
    assert holder.request("GET", f"{path}?ticket=").status == 403
    assert holder.request("GET", path, headers={TICKET_HEADER: ""}).status == 403


def test_absent_and_present_blobs_look_the_same_without_a_ticket(holder: Worker) -> None:
    held = holder.request("GET", object_path(name(CONTENT)))
    absent = holder.request("GET", object_path(name(b"absent")))
    assert (held.status, held.body) == (absent.status, absent.body)


def test_a_range_ticket_allows_its_range_only(holder: Worker) -> None:
    fields: dict[str, Any] = {"start": 100, "length": 50}
    inside = holder.get(CONTENT, headers={"Range": "bytes=110-149"}, **fields)
    assert (inside.status, inside.body) == (206, CONTENT[110:150])
    assert holder.get(CONTENT, headers={"Range": "bytes=99-120"}, **fields).status == 403
    assert holder.get(CONTENT, headers={"Range": "bytes=100-150"}, **fields).status == 403
    assert holder.get(CONTENT, headers={"Range": "bytes=-5"}, **fields).status == 403
    assert holder.get(CONTENT, **fields).status == 403


def test_a_replication_ticket_allows_reading_but_not_storing(holder: Worker) -> None:
    assert holder.get(CONTENT, kind=TicketKind.REPLICATE).body == CONTENT
    ticket = holder.brain.signer.ticket(b"new", kind=TicketKind.REPLICATE)
    path = object_path(name(b"new"))
    assert holder.request("PUT", path, b"new", {TICKET_HEADER: ticket}).status == 403
    ticket = holder.brain.signer.ticket(CONTENT, kind=TicketKind.READ)
    path = object_path(name(CONTENT))
    assert holder.request("DELETE", path, headers={TICKET_HEADER: ticket}).status == 403


def test_a_ticket_of_a_dropped_key_is_refused(worker: Worker) -> None:
    worker.put(CONTENT)
    old = worker.brain.signer.ticket(CONTENT)
    assert worker.show(old, CONTENT).status == 200
    worker.brain.signer = Signer()
    worker.brain.wait_for_beat()
    worker.wait_until(lambda: worker.show(old, CONTENT).status == 403)
    assert worker.get(CONTENT).status == 200


@pytest.mark.parametrize("skew_s", [-300, 300, 86_400])
def test_clock_skew_does_not_affect_tickets(
    brain: FakeBrain, workers: Callable[..., Worker], skew_s: int
) -> None:
    brain.signer.skew_s = skew_s
    worker = workers().start()
    assert worker.put(CONTENT).status == 201
    assert worker.get(CONTENT).status == 200
    now = int(brain.signer.now())
    expired: dict[str, Any] = {"issued_at": now - 31, "expires_at": now - 1}
    assert code_of(worker.get(CONTENT, **expired)) == "403 ticket_expired"
    early: dict[str, Any] = {"issued_at": now + 10, "expires_at": now + 40}
    assert code_of(worker.get(CONTENT, **early)) == "403 ticket_not_yet_valid"


def test_a_change_of_the_brain_s_clock_is_followed(worker: Worker) -> None:
    worker.put(CONTENT)
    worker.brain.signer.skew_s = -600
    worker.wait_until(lambda: worker.get(CONTENT).status == 200)
    worker.brain.signer.skew_s = 600
    worker.wait_until(lambda: worker.get(CONTENT).status == 200)


def test_a_worker_without_a_brain_serves_nothing_and_logs_it(
    brain: FakeBrain, workers: Callable[..., Worker]
) -> None:
    brain.may_answer.clear()
    worker = workers().start(until_served=False)
    worker.wait_until(lambda: worker.health() == 503)
    assert code_of(worker.get(CONTENT)) == "503 starting"
    brain.may_answer.set()
    worker.wait_until(lambda: worker.health() == 200)


def test_tickets_and_secrets_are_never_logged(workers: Callable[..., Worker]) -> None:
    worker = workers("--log-level", "debug", "--log-format", "json").start()
    ticket = worker.brain.signer.ticket(CONTENT)
    worker.put(CONTENT)
    worker.show(ticket, CONTENT)
    worker.request("GET", f"{object_path(name(CONTENT))}?ticket={ticket}x")
    worker.request("GET", f"/nowhere?ticket={ticket}")
    assert ticket not in worker.log
    assert ticket[:40] not in worker.log
    assert "s3cret" not in worker.log
