"""Fixtures for all tests."""

import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest
from django.conf import settings
from django.core.management.base import BaseCommand
from procrastinate.contrib.django import app

from accounts.models import User
from accounts.passwords import TunedArgon2Hasher
from common.scoping import outside, unscoped
from edgecache.api import client
from environments.models import Organization
from sqlgateway.pg import changed_roles
from sqlgateway.run.record_writer import WRITER
from tests import cast, conformance, table_cleanup
from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import drop_left, template
from tests.edgecache.new_cluster import new_cluster
from tests.recorder import Recorder
from tests.throwaway import is_throwaway

# The same examples each time: a test fails for the change that broke it, and not by chance. CI has
# a profile of Hypothesis' own with a hundred; elsewhere they are fewer. How long one takes says
# nothing beside three more processes. To look for more: pytest --hypothesis-profile=explore
hypothesis.settings.register_profile(
    "quick",
    max_examples=30,
    deadline=None,
    derandomize=True,
    # A busy machine must not make tests fail.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("explore", max_examples=1000, deadline=None)
if not os.environ.get("CI"):
    hypothesis.settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --record-examples."""
    text = "Record examples for the OpenAPI document (tests/recorder.py)."
    parser.addoption("--record-examples", action="store_true", help=text)


class _FailuresAtOnce:
    """Print the name of a test when it fails: a run that is ended from outside has no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self.writer = config.get_terminal_writer()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.writer.line(f"\nFailed in its {report.when}: {report.nodeid}")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Name failures at once in CI."""
    if os.environ.get("CI") and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_FailuresAtOnce(session.config))


def pytest_collection_finish() -> None:
    """Exclude loaded modules from garbage collection, since they stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Have each process copy its database from one that is migrated once for all."""
    if is_throwaway():
        test = settings.DATABASES["default"].setdefault("TEST", {})
        test |= {"TEMPLATE": template("control_template"), "MIGRATE": False}


@pytest.fixture(scope="session", autouse=True)
def _cheap_hashes() -> None:
    """Hash passwords at low cost, to keep thousands of sign-ups fast."""
    TunedArgon2Hasher.memory_cost, TunedArgon2Hasher.time_cost = 1024, 1


@pytest.fixture(scope="session", autouse=True)
def _unscoped() -> Iterator[None]:
    """Let tests arrange and read every tenant's rows; what these call begins outside of it."""
    BaseCommand.execute = outside()(BaseCommand.execute)  # type: ignore[method-assign]  # for all
    for task in app.tasks.values():
        task.func = outside()(task.func)
    with unscoped("tests arrange rows"):
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_background_writer() -> None:
    """Leave records of SQL unwritten: a thread does not see what a test has not committed."""
    WRITER.is_enabled = False


@pytest.fixture(scope="session", autouse=True)
def _quick_emptying() -> None:
    table_cleanup.install()


@pytest.fixture(scope="session", autouse=True)
def _conformance(pytestconfig: pytest.Config) -> Iterator[None]:
    """Hold every exchange of a test with the API against its document."""
    if not pytestconfig.getoption("record_examples"):
        conformance.install()
        yield
        return
    recorder = Recorder()
    conformance.install(recorder.offer)
    yield
    recorder.save()


@pytest.fixture(scope="session", autouse=True)
def _no_role_checks() -> None:
    """Leave the roles' check to the tests of it: its thread would see no test's transaction."""
    changed_roles.ROLE_CHECK.checks.seconds = 3600.0


@pytest.fixture(scope="session", autouse=True)
def _no_brains_left() -> Iterator[None]:
    yield
    drop_left()


@pytest.fixture(autouse=True)
def _closed_breaker() -> None:
    """Begin with a cache that is asked: another test's brain may have been away."""
    client.breaker.succeeded()
    for session in client._sessions.values():
        session.close()
    client._sessions.clear()


@pytest.fixture
def anyone() -> cast.Caller:
    """Return a caller without a token."""
    return cast.Caller()


@pytest.fixture
def home(db: None) -> Organization:
    """Return Alice's organization."""
    return cast.organization()


@pytest.fixture
def alice(home: Organization) -> User:
    """Return the owner."""
    return cast.member(home, "alice@example.com")


@pytest.fixture
def bob(home: Organization) -> User:
    """Return a reader in Alice's organization."""
    return cast.member(home, "bob@example.com", role="reader")


@pytest.fixture
def charlie(db: None) -> User:
    """Return the owner of another organization."""
    return cast.member(cast.organization("Charlie's"), "charlie@example.org")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return the brain with two workers that tests share; each test has its own tenant."""
    with new_cluster(tmp_path_factory) as running:
        yield running
