"""One running platform for all tests of clients; what they make in it has names of its own."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from django.conf import settings
from django.db import connection
from django.test.testcases import TransactionTestCase
from django.test.utils import modify_settings
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

import zonal
from accounts.models import User
from edgecache.api import client as brain_client
from environments import environments
from environments.models import Organization
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from tests import cast
from tests.clients.front import Front, fronting
from tests.edgecache.cluster import Cluster
from tests.sqlgateway import conftest as databases
from tests.waiting import wait_until


@dataclass(frozen=True)
class Platform:
    """A running platform with Alice's organization."""

    url: str
    home: Organization
    alice: User


@pytest.fixture(scope="package")
def platform(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, cluster: Cluster
) -> Iterator[Platform]:
    """Yield a platform with a brain; its rows are committed, and deleted in the end."""
    brain = replace(
        settings.CACHE,
        brain_url=f"http://127.0.0.1:{cluster.internal_port}",
        s3_url=cluster.url,
        secret=cluster.secret,
        is_enabled=True,
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        django_db_blocker.unblock(),
        modify_settings(ALLOWED_HOSTS={"append": "127.0.0.1"}),
    ):
        patch.setattr(settings, "CACHE", brain)
        PLACEMENT_CACHE.clear()
        home = environments.create_organization("Alice's")
        alice = cast.member(home, "alice@example.com", password=cast.PASSWORD)
        others = set(threading.enumerate())
        server = LiveServer("127.0.0.1")
        yield Platform(server.url, home, alice)
        server.stop()
        # Each has connections to the database until its client has closed.
        wait_until(lambda: not _of_requests() - others)
        brain_client._sessions.clear()
        databases._take_back()
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE procrastinate_jobs CASCADE")
        TransactionTestCase("__init__")._fixture_teardown()  # type: ignore[attr-defined]  # Django's


def _of_requests() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if "process_request" in one.name}


@pytest.fixture
def _django_db_helper() -> None:
    """Keep the rows from test to test: they are the platform's."""


@pytest.fixture
def front(db: None, platform: Platform) -> Iterator[Front]:
    """Return a proxy in front of the platform."""
    with fronting(platform.url) as started:
        yield started


@pytest.fixture
def client(platform: Platform, front: Front) -> Iterator[zonal.Client]:
    """Return a client with a session of Alice's."""
    token = cast.signed_in(platform.alice).access_token
    with zonal.Client(front.url, token=token) as opened:
        yield opened
