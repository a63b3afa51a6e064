"""Databases for the cast, on the real tenants' cluster."""

from collections.abc import Iterator

import pytest

from sqlgateway import clusters, connections, making
from sqlgateway.models import Database
from sqlgateway.placements import CACHE
from tests.sqlgateway import support
from tests.sqlgateway.kept import KEPT


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    """Start without kept connections or placements of another test."""
    CACHE.clear()
    yield
    CACHE.clear()
    connections.CACHE.clear()


@pytest.fixture
def databases(db: None) -> Iterator[None]:
    """Drop the test's databases when it is over."""
    yield
    _drop_all()


def _drop_all() -> None:
    connections.CACHE.clear()
    # A test may have led the cluster's address astray.
    clusters.default()
    for database in Database.unscoped.select_related("cluster"):
        if not KEPT.take(database):
            making.drop(database)


@pytest.fixture
def alice(databases: None, request: pytest.FixtureRequest) -> support.Caller:
    """Give the admin of an environment; with ``provisions`` its database is yet to be made."""
    someone = support.caller(support.organization("Alice's"))
    if request.node.get_closest_marker("provisions") is None:
        KEPT.give(someone.scope)
    return someone


@pytest.fixture
def bob(alice: support.Caller) -> support.Caller:
    """Give a reader of the same environment."""
    return alice.be("reader")


@pytest.fixture
def charlie(databases: None) -> support.Caller:
    """Give the admin of another organization."""
    return support.caller(support.organization("Charlie's"))


@pytest.fixture
def committed(transactional_db: None) -> Iterator[support.Caller]:
    """Give Alice with rows that other threads see."""
    yield support.caller(support.organization("Alice's"))
    _drop_all()
