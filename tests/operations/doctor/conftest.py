"""A healthy platform, in which each test breaks one thing."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from edgecache.api import client
from tests.edgecache.api.brain import SECRET, ScriptedBrain
from tests.operations.doctor.support import node


@pytest.fixture
def brain(settings: Settings) -> Iterator[ScriptedBrain]:
    """Return a scripted brain that is available."""
    scripted = ScriptedBrain()
    settings.CACHE = replace(settings.CACHE, brain_url=scripted.url, secret=SECRET, timeout_s=1)
    client.breaker.succeeded()
    yield scripted
    client.breaker.succeeded()
    client._sessions.clear()
    scripted.close()


@pytest.fixture(autouse=True)
def healthy(db: None, brain: ScriptedBrain, settings: Settings) -> None:
    """Provide what a healthy platform has."""
    settings.PUBLIC_URL = "http://localhost:8000"
    settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=(settings.PUBLIC_URL,))
    brain.say("GET /v1/nodes", 200, {"nodes": [node(), node()]})
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
