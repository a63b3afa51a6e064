"""The end of many sessions at the moment in which one is added or continued."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts import tasks
from accounts.models import Session, User
from tests.cast import Answer, Caller, signed_in
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

WAITS = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock')"
)


def switch(caller: Caller, environment: str, **more: Any) -> Answer:
    body = {"refresh_token": caller.refresh_token, "environment": environment, **more}
    return Caller().post("/v1/auth/switch", body)


def refresh(token: str) -> Answer:
    return Caller().post("/v1/auth/refresh", {"refresh_token": token})


def is_one_waiting() -> bool:
    with connection.cursor() as cursor:
        # Otherwise each look in one transaction shows what the first one has shown.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(WAITS)
        return bool(cursor.fetchone()[0])


@contextmanager
def overtaken_by(call: Callable[[], Answer]) -> Iterator[None]:
    """Commit the block's requests while another request waits for their locks."""

    def run() -> Answer:
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            yield
            waiting = pool.submit(run)
            wait_until(is_one_waiting)
        waiting.result()


def test_a_replay_also_ends_a_session_that_a_switch_is_adding(alice: User) -> None:
    first = signed_in(alice)
    other = first.holding(switch(first, "sandbox", keep_current=True))
    second = first.holding(first.refresh())
    second.holding(second.refresh()).get("/v1/whoami")
    with overtaken_by(lambda: refresh(first.refresh_token)):
        added = other.holding(switch(other, "live", keep_current=True))
    assert added.get("/v1/whoami").code == "session_revoked"
    assert not Session.objects.filter(ended_at=None).exists()


def test_ending_all_sessions_also_ends_one_whose_lost_switch_is_undone(alice: User) -> None:
    caller, other = signed_in(alice), signed_in(alice)
    switch(caller, "sandbox")
    earlier = timezone.now() - timedelta(minutes=1)
    Session.objects.filter(end_reason="switched").update(ended_at=earlier)
    with overtaken_by(lambda: other.call("DELETE", "/v1/auth/sessions")):
        again = caller.holding(caller.refresh())
    assert again.get("/v1/whoami").code == "session_revoked"


def test_old_sessions_are_deleted_in_batches(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "BATCH", 2)
    for _ in range(5):
        switch(signed_in(alice), "sandbox")
    Session.objects.update(ends_at=timezone.now() - timedelta(days=31))
    kept = signed_in(alice)
    tasks.forget_expired(timestamp=0)
    assert Session.objects.count() == 1
    assert kept.get("/v1/whoami").status == 200
