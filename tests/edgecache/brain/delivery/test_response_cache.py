"""A response is used again until something that it depends on has changed."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest

from edgecache.brain.core.values import (
    BucketInfo,
    EnvironmentKey,
    ObjectVersion,
    Span,
    WorkerSource,
)
from edgecache.brain.delivery.plan import delivery_of
from edgecache.brain.delivery.response_cache import ResponseCache, ResponseKey
from edgecache.brain.directory.index import Holders, Index

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ResponseKey(1, "k", with_checksums=False)
BUCKET = BucketInfo(
    id=1,
    tenant=EnvironmentKey(1, 1),
    name="shelf",
    public_name="shelf-1",
    origin_id=None,
    origin=None,
    origin_prefix="",
    created_at=NOW,
)
VERSION = ObjectVersion(
    1, "k", "", 5, bytes(32), 9, "etag", "text/plain", {}, {}, {}, (), NOW, {}, NOW
)


class Brain:
    """A brain's directory and nodes with one object that one worker holds, and its response."""

    def __init__(self) -> None:
        self.holder = uuid4()
        self.unusable: set[UUID] = set()
        self.coherence = Mock(changes=1, is_current=True)
        self.directory = Mock(coherence=self.coherence, index=Index(2**20), holders=Holders(2**20))
        self.nodes = Mock(changes=1, sources=self.sources)
        self.fetches: set[tuple[int, str, str]] = set()
        objects = Mock(singleflight=Mock(running=self.fetches))
        self.cache = ResponseCache(self.directory, self.nodes, objects)
        self.directory.index.put(VERSION)
        self.directory.holders.put(VERSION.sha256, (self.holder,))
        delivery = delivery_of(
            BUCKET,
            VERSION,
            span=Span(0, VERSION.size),
            status=200,
            headers=[],
            sources=self.sources(VERSION.sha256, (self.holder,)),
            is_hit=True,
        )
        self.cache.keep(KEY, BUCKET, VERSION, delivery, Mock(), region="")

    def sources(
        self, _: bytes, holders: tuple[UUID, ...], *__: str, **___: object
    ) -> tuple[WorkerSource, ...]:
        usable = [each for each in holders if each not in self.unusable]
        return tuple(WorkerSource(each, "http://127.0.0.1:1") for each in usable)

    def serves(self, bucket: BucketInfo = BUCKET) -> bool:
        return self.cache.find(KEY, bucket) is not None

    def put(self) -> None:
        self.coherence.changes += 1
        self.directory.index.put(replace(VERSION, generation=6))

    def purge(self) -> None:
        self.coherence.changes += 1
        self.directory.index.forget(1, "k", below=6)

    def add_holder(self) -> None:
        self.coherence.changes += 1
        self.directory.holders.put(VERSION.sha256, (self.holder, uuid4()))

    def lose_node(self) -> None:
        self.nodes.changes += 1
        self.unusable.add(self.holder)


@pytest.mark.parametrize("change", [Brain.put, Brain.purge, Brain.add_holder, Brain.lose_node])
def test_a_response_ends_with_what_it_depends_on(change: Callable[[Brain], None]) -> None:
    brain = Brain()
    assert brain.serves()
    # Another object's change.
    brain.coherence.changes += 1
    assert brain.serves()

    change(brain)

    assert not brain.serves()


def test_a_response_ends_with_a_change_of_its_bucket() -> None:
    brain = Brain()
    fields = {name: getattr(BUCKET, name) for name in BucketInfo.__struct_fields__}
    assert brain.serves(BucketInfo(**fields))
    assert not brain.serves(BucketInfo(**fields | {"is_public": not BUCKET.is_public}))


def test_a_response_waits_for_a_fetch_and_for_coherence() -> None:
    brain = Brain()
    brain.fetches.add((1, "k", ""))
    assert not brain.serves()
    brain.fetches.clear()
    brain.coherence.is_current = False
    assert not brain.serves()
    brain.coherence.is_current = True
    assert brain.serves()
