"""Running SQL requests: who sees and cancels them, from this process and from another one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from accounts.models import User
from common.principals import Scope
from environments import environments
from sqlgateway import tasks
from sqlgateway.errors import RequestNotRunning
from sqlgateway.models import RunningSql
from sqlgateway.run import running_requests
from sqlgateway.run.requests import Caller, SqlRequest, SqlText
from sqlgateway.run.running_requests import REGISTRY, Cancellation, RunningRequest, RunningRequests
from tests import cast
from tests.sqlgateway import support
from tests.waiting import wait_until

REQUEST_ID = "request-of-alice"
SLOW = SqlRequest((SqlText("ALTER ROLE CURRENT_USER PASSWORD 'hunter2'"),))


@pytest.fixture
def alice(db: None) -> User:
    """Return a member of an organization; callers get their roles from the test."""
    return cast.member(cast.organization(), "alice@example.com")


@pytest.fixture
def bob(alice: User) -> User:
    """Return a reader of the same organization."""
    return cast.member(alice.organization, "bob@example.com", role="reader")


@pytest.fixture
def charlie(db: None) -> User:
    """Return a member of another organization."""
    return cast.member(cast.organization("Charlie's"), "charlie@example.org")


@pytest.fixture
def elsewhere() -> RunningRequests:
    """Return the registry of another process."""
    return RunningRequests()


def caller_of(user: User, role: str, environment: str = "live") -> Caller:
    place = environments.find(user.organization_id, environment)
    scope = Scope(user.organization_id, place.pk)
    return Caller(scope, role, user.pk, str(user.email))  # type: ignore[arg-type]  # a role's name


def long_running(caller: Caller) -> RunningRequest:
    return RunningRequest(caller, REQUEST_ID, SLOW, began=-1000.0)


@pytest.fixture
def others(alice: User, bob: User, charlie: User) -> list[Caller]:
    """Return those who may not cancel Alice's request in live."""
    same_user_elsewhere = caller_of(alice, "admin", "sandbox")
    return [caller_of(bob, "operator"), caller_of(charlie, "admin"), same_user_elsewhere]


def is_cancelled_by(caller: Caller) -> bool:
    try:
        running_requests.cancel(caller, REQUEST_ID)
    except RequestNotRunning:
        return False
    return True


def is_requested(request: RunningRequest) -> bool:
    return request.cancellation.is_requested


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_only_its_user_and_admins_of_its_environment_cancel_a_request(
    alice: User, bob: User, others: list[Caller], elsewhere: RunningRequests, where: str
) -> None:
    registry = REGISTRY if where == "here" else elsewhere
    owner = caller_of(alice, "operator")
    for chosen in (owner, caller_of(bob, "admin")):
        request = long_running(owner)
        with registry.track(request):
            elsewhere.sync()
            assert not [other for other in others if is_cancelled_by(other)]
            elsewhere.sync()
            assert not is_requested(request)
            assert is_cancelled_by(chosen)
            elsewhere.sync()
            assert is_requested(request)
        elsewhere.sync()
        assert not is_cancelled_by(chosen)
    assert RunningSql.objects.count() == 0


def test_a_fast_request_writes_no_row(
    alice: User, elsewhere: RunningRequests, django_assert_num_queries: Any
) -> None:
    request = RunningRequest(caller_of(alice, "admin"), REQUEST_ID, SLOW)

    with django_assert_num_queries(0):
        with elsewhere.track(request):
            elsewhere.sync()
        elsewhere.sync()


def test_the_list_shows_ones_own_without_secrets(
    alice: User, bob: User, charlie: User, elsewhere: RunningRequests
) -> None:
    with (
        elsewhere.track(long_running(caller_of(bob, "reader"))),
        elsewhere.track(long_running(caller_of(alice, "admin"))),
        elsewhere.track(long_running(caller_of(alice, "admin", "sandbox"))),
    ):
        elsewhere.sync()
        seen = {
            user.email: cast.signed_in(user).get("/v1/sql/running").body["results"]
            for user in (alice, bob, charlie)
        }
    assert [row["user"] for row in seen[bob.email]] == [bob.email]
    assert {row["user"] for row in seen[alice.email]} == {alice.email, bob.email}
    assert seen[charlie.email] == []
    assert "hunter2" not in str(seen)


def test_the_api_answers_202_or_404(alice: User, elsewhere: RunningRequests) -> None:
    client = cast.signed_in(alice)
    with elsewhere.track(long_running(caller_of(alice, "admin"))):
        elsewhere.sync()
        assert client.call("DELETE", f"/v1/sql/{REQUEST_ID}").status == 202
        (row,) = client.get("/v1/sql/running").body["results"]
    assert row["is_cancelled"]
    for unknown in (str(uuid4()), "x"):
        answer = client.call("DELETE", f"/v1/sql/{unknown}")
        assert (answer.status, answer.code) == (404, "request_not_running")
    assert client.call("DELETE", "/v1/sql/a%00b").status == 404


def test_rows_of_a_process_that_died_are_not_shown_and_deleted(
    alice: User, elsewhere: RunningRequests
) -> None:
    caller = caller_of(alice, "admin")
    request = long_running(caller)
    with elsewhere.track(request):
        elsewhere.sync()
    RunningSql.objects.update(expires_at=timezone.now())

    assert not is_cancelled_by(caller)
    tasks.prune_history(0)
    assert RunningSql.objects.count() == 0


def test_a_row_is_shown_as_long_as_its_request_runs(
    alice: User, elsewhere: RunningRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import or a stream may run for much longer than a statement."""
    monkeypatch.setattr(running_requests, "RENEW_S", 0)
    caller = caller_of(alice, "admin")
    request = long_running(caller)
    with elsewhere.track(request):
        elsewhere.sync()
        RunningSql.objects.update(expires_at=timezone.now())
        elsewhere.sync()

        assert is_cancelled_by(caller)
        elsewhere.sync()
        assert is_requested(request)


def test_a_cancellation_before_the_begin_is_not_lost() -> None:
    cancellation, calls = Cancellation(), []
    cancellation.request()

    cancellation.attach(lambda: calls.append("cancelled"))

    assert calls == ["cancelled"]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_sleep(20)",
        "CREATE TABLE t (id int); INSERT INTO t VALUES (1); SELECT pg_sleep(20)",
        (
            "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(20); EXCEPTION WHEN query_canceled THEN NULL;"
            " END; END LOOP; END $$"
        ),
    ],
)
def test_a_cancelled_request_ends_and_changes_nothing(
    committed: support.Caller, pool: ThreadPoolExecutor, text: str
) -> None:
    committed.value("SELECT 1")
    future = pool.submit(committed.sql, text)
    wait_until(lambda: support.backends_of(committed))

    running_requests.cancel(Caller(committed.scope, "admin", UUID(int=0)), "request-of-a-test")
    answer = future.result(timeout=10)

    assert (answer.status, answer.code) == (400, "query_cancelled")
    assert committed.value("SELECT to_regclass('t')") is None
    assert support.backends_of(committed) == []
