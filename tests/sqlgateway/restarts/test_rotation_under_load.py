"""Passwords are rotated while two web processes answer, and no request fails."""

from contextlib import closing
from pathlib import Path

import pytest

from audit.models import AuditEvent
from sqlgateway.models import Database
from tests import cast
from tests.commands import facts
from tests.load import load
from tests.web_process import call, web_process

pytestmark = pytest.mark.slow

EMAIL = "alice@example.com"
# A connection that has held so much is not kept: each such request logs in.
LARGE = "SELECT length(repeat('x', 2)), repeat('x', 1500000)"
TIMES = 20


@pytest.mark.django_db(transaction=True)
def test_requests_in_other_processes_go_on_while_passwords_rotate(
    tmp_path: Path, databases: None
) -> None:
    home = cast.organization()
    cast.member(home, EMAIL, password=cast.PASSWORD)
    with web_process(tmp_path) as web:
        sign_in = {"email": EMAIL, "password": cast.PASSWORD}
        token = web.ask("POST", "/v1/auth/login", sign_in)["access_token"]
        kept, other = web.connect(), web.connect()
        large = ("POST", "/v1/sql", {"query": LARGE}, token)
        small = ("POST", "/v1/sql", {"query": "SELECT 1"}, token)
        reads = ("POST", "/v1/sql", {"query": LARGE, "read_only": True}, token)
        callers = {
            "logins": lambda: web.ask(*large),
            "logins of a reader": lambda: web.ask(*reads),
            "more logins": lambda: call(kept, *large),
            "kept connections": lambda: call(other, *small),
        }
        with closing(kept), closing(other), load(callers) as seen:
            seen.goes_on()
            before = Database.objects.get(organization=home).secrets
            for _ in range(TIMES):
                assert facts("rotatepasswords", str(home.pk), "live")["databases"] == 1
                seen.goes_on(1)
            seen.goes_on()
    assert seen.failures == []
    assert Database.objects.get(organization=home).secrets != before
    assert AuditEvent.objects.filter(tag="sql:database:rotate").count() == TIMES
    assert not AuditEvent.objects.filter(tag="sql:role:repair").exists()
