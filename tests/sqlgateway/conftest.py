"""Databases for the cast, on the real tenants' cluster."""

from collections.abc import Callable, Iterator

import pytest

from sqlgateway.clusters import servers
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.databases import tenant_databases
from sqlgateway.models import Database, RetiredDatabase
from sqlgateway.pg import pool
from sqlgateway.run.history import RECORDER
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from tests import cast
from tests.cast import Caller
from tests.sqlgateway import support
from tests.sqlgateway.kept import KEPT


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    """Start without kept connections or placements of another test."""
    PLACEMENT_CACHE.__init__()  # type: ignore[misc]  # emptied in place, with the clusters
    # Tests write the history themselves; what others left would fill its queue.
    RECORDER.__init__()  # type: ignore[misc]  # emptied in place: others hold this object
    yield
    PLACEMENT_CACHE.clear()
    pool.CONNECTION_POOL.clear()


@pytest.fixture(scope="session", autouse=True)
def _none_left() -> Iterator[None]:
    """Drop in the end what tests left."""
    yield
    KEPT.drop_all()


@pytest.fixture
def databases(db: None) -> Iterator[None]:
    """Take the test's databases back when it is over."""
    yield
    _take_back()


def _take_back() -> None:
    OPEN_TRANSACTIONS.clear()
    pool.CONNECTION_POOL.clear()
    # A test may have led the cluster's address astray.
    servers.default()
    for retired in RetiredDatabase.objects.select_related("cluster"):
        tenant_databases.drop_named(retired.cluster, retired.dbname, retired.roles)
    for database in Database.objects.select_related("cluster"):
        KEPT.take(database)


def _admin_of(name: str, request: pytest.FixtureRequest) -> support.Caller:
    someone = support.caller(support.organization(name))
    if request.node.get_closest_marker("provisions") is None:
        KEPT.give(someone.scope)
    return someone


@pytest.fixture
def alice(databases: None, request: pytest.FixtureRequest) -> support.Caller:
    """Return the admin of an environment; with ``provisions`` its database is yet to be made."""
    return _admin_of("Alice's", request)


@pytest.fixture
def bob(alice: support.Caller) -> support.Caller:
    """Return a reader of the same environment."""
    return alice.be("reader")


@pytest.fixture
def charlie(databases: None, request: pytest.FixtureRequest) -> support.Caller:
    """Return the admin of another organization, in the same way."""
    return _admin_of("Charlie's", request)


@pytest.fixture
def signed_in_as(databases: None) -> Callable[[str], Caller]:
    """Return a function that signs a new member of one organization in with a role."""
    organization = cast.organization()
    KEPT.give(support.caller(organization).scope)

    def sign_in(role: str) -> Caller:
        return cast.signed_in(cast.member(organization, f"{role}@example.com", role=role))

    return sign_in


@pytest.fixture
def committed(transactional_db: None) -> Iterator[support.Caller]:
    """Return Alice with rows that other threads see."""
    yield support.caller(support.organization("Alice's"))
    _take_back()
