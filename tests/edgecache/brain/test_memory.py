"""What the brain answers from memory, and what it asks of the worker that is paid for it."""

import hashlib
from unittest.mock import Mock
from uuid import uuid4

import pytest

from edgecache.brain import mover as moving
from edgecache.brain.delivery import Delivery, Source, Span, Tenant
from edgecache.brain.mover import Mover

BLOB = b"often" * 100


def in_memory(*, owner: int | None, start: int = 0, length: int = len(BLOB)) -> bytes | None:
    """Give what a mover has at hand of a blob that was read twice. owner: of the node with it."""
    sha256 = hashlib.sha256(BLOB).digest()
    mover = Mover(Mock(), Mock(get=lambda _id: Mock(organization_id=owner)), Mock(), Mock(), Mock())
    for _ in range(2):
        mover._hot.offer(sha256, BLOB)
    delivery = Delivery(
        tenant=Tenant(1, 1),
        bucket_id=1,
        key="k",
        generation=1,
        sha256=sha256,
        size=len(BLOB),
        span=Span(start, length),
        status=200,
        headers=[],
        sources=(Source(uuid4(), "http://127.0.0.1:1"),),
    )
    return mover._in_memory(delivery)


def test_the_platforms_own_nodes_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "ASKED_SHARE", 0.0)

    assert in_memory(owner=None) == BLOB
    assert in_memory(owner=None, start=3, length=9) == BLOB[3:12]


def test_a_strangers_node_is_asked_for_what_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "ASKED_SHARE", 0.0)

    assert in_memory(owner=7) is None


def test_some_reads_go_to_a_worker_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "ASKED_SHARE", 1.0)

    assert in_memory(owner=None) is None
