"""A web server is replaced during sign-ins and SQL, and no request fails."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import cast
from tests.load import load
from tests.waiting import wait_until
from tests.web_process import Web, call, web_process

pytestmark = pytest.mark.slow

EMAILS = ("alice@example.com", "bob@example.com")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """Run the platform's web server on the test's database."""
    with web_process(tmp_path) as made:
        yield made


@pytest.mark.django_db(transaction=True)
def test_a_web_server_hands_over_to_another(web: Web, databases: None) -> None:
    home = cast.organization()
    # Two, since many sign-ins of one end the oldest.
    alice, bob = [{"email": email, "password": cast.PASSWORD} for email in EMAILS]
    for email in EMAILS:
        cast.member(home, email, password=cast.PASSWORD)
    token = web.ask("POST", "/v1/auth/login", alice)["access_token"]
    kept, other = web.connect(), web.connect()
    query = ("POST", "/v1/sql", {"query": "SELECT 40 + 2, pg_sleep(0.05)"}, token)
    callers = {
        "SQL": lambda: call(kept, *query),
        "other SQL": lambda: call(other, *query),
        "SQL on new connections": lambda: web.ask(*query),
        "sign-in": lambda: web.ask("POST", "/v1/auth/login", bob),
    }
    with closing(kept), closing(other), load(callers) as seen:
        seen.goes_on()
        web.process.send_signal(signal.SIGUSR2)
        successor = web.main_pid()
        web.process.wait(30)
        seen.goes_on()
    os.kill(successor, signal.SIGTERM)
    wait_until(lambda: not web.is_up())
    assert seen.failures == []
    assert successor != web.process.pid
