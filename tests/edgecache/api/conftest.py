"""The platform with a scripted brain or with a real one."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from edgecache.api import client
from tests.edgecache.api.brain import SECRET, ScriptedBrain
from tests.edgecache.cluster import Cluster


@pytest.fixture(autouse=True)
def closed_breaker() -> Iterator[None]:
    """Start and end each test with a closed circuit breaker."""
    client.breaker.succeeded()
    yield
    client.breaker.succeeded()
    client._sessions.clear()


@pytest.fixture
def brain(settings: Settings) -> Iterator[ScriptedBrain]:
    """Return a scripted brain that is available."""
    scripted = ScriptedBrain()
    client._sessions.clear()
    settings.CACHE = replace(
        settings.CACHE, brain_url=scripted.url, secret=SECRET, timeout_s=1, is_enabled=True
    )
    yield scripted
    for session in client._sessions.values():
        session.close()
    scripted.close()


@pytest.fixture
def switched_off(settings: Settings) -> None:
    """Turn the cache off and set a brain address where no server listens."""
    settings.CACHE = replace(settings.CACHE, brain_url="http://127.0.0.1:9", is_enabled=False)


@pytest.fixture
def over_a_brain(cluster: Cluster, settings: Settings) -> Iterator[None]:
    """Connect the platform to a real brain with two workers."""
    url = f"http://127.0.0.1:{cluster.internal_port}"
    settings.CACHE = replace(
        settings.CACHE, brain_url=url, s3_url=cluster.url, secret=cluster.secret, is_enabled=True
    )
    client._sessions.clear()
    client.breaker.succeeded()
    yield
    client.breaker.succeeded()
    client._sessions.clear()
