"""The callers of every operation, and the databases of those that use one."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from accounts.models import User
from environments.models import Organization
from tests.oauth.conftest import google, platform
from tests.oauth.domains.nameserver import NameServer
from tests.rules.fuzzing.world import World
from tests.rules.objects import home_of
from tests.sqlgateway.conftest import _no_leftovers, _none_left, databases
from tests.sqlgateway.kept import KEPT

# Of other tests: a provider of sign-ins on loopback, databases of tenants.
__all__ = ["_no_leftovers", "_none_left", "databases", "google", "platform"]

# The paths whose operations work in the database of an environment.
OVER_DATABASES = ("/v1/sql", "/v1/environments", "/v1/organization")


@pytest.fixture(autouse=True)
def _names(platform: None, settings: Settings) -> Iterator[None]:
    """Ask a name server on loopback, which knows no name."""
    with NameServer() as server:
        settings.SERVER = replace(settings.SERVER, dns_resolvers=(server.address,))
        yield


@pytest.fixture
def world(label: str, home: Organization, alice: User, request: pytest.FixtureRequest) -> World:
    """Return the callers of an operation, with what the operation uses."""
    path = label.partition(" ")[2]
    if path.startswith("/v1/auth/oauth"):
        request.getfixturevalue("google")
    made = World.around(home, alice)
    if path.startswith(OVER_DATABASES):
        request.getfixturevalue("databases")
        for admin in made.admins.values():
            KEPT.give(home_of(admin))
    return made
